/* gradio's status tracker animates all the time a page is open, seen or not. That keeps browser and processor
   busy, which the engine beside it could use. Frames it asks for, and those of the loop it starts, come
   once a second instead. Runs before gradio's own scripts, which keep a reference. */
{
  const nextFrame = window.requestAnimationFrame.bind(window);
  const slow = new WeakSet();
  window.requestAnimationFrame = (draw) => {
    if (!slow.has(draw) && /statustracker/.test(new Error().stack)) slow.add(draw);
    return slow.has(draw) ? setTimeout(() => nextFrame(draw), 1000) : nextFrame(draw);
  };
}
