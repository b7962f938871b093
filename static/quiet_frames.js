/* gradio's status tracker asks for a frame after every frame, to count seconds that nobody sees here, for as
   long as a page is open. That keeps browser and processor busy, which the engine beside it could use. Its
   requests, and only its, are slowed to one a second. Runs before gradio's own scripts, which keep a reference. */
{
  const nextFrame = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (draw) =>
    /statustracker/.test(new Error().stack) ? setTimeout(() => nextFrame(draw), 1000) : nextFrame(draw);
}
