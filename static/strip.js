/* The token strip: appends spans, never rewrites them; copies exactly the output; keyboard roving.
   Tokens that are not output cannot be selected and never reach the clipboard. A line of text is a block
   of its own, so that adding to the last line does not lay out all the others again. */
function tokenStrip(box, listeners) {
  const tokens = [];
  const spans = [];
  let line = null;
  let current = -1;

  /* Spaces and line breaks get elements of their own, so that a style can show them in place. */
  function fill(span, text) {
    for (const piece of text.split(/( |\n|\t)/)) {
      if (!piece) continue;
      const kind = { ' ': 'sp', '\n': 'nl', '\t': 'tab' }[piece];
      span.append(kind ? make('i', kind, piece) : piece);
    }
  }

  function draw(token) {
    const span = make('span', `tok ${token.kind}`);
    span.dataset.i = tokens.length;
    if (token.kind === 'rejected' && token.trial?.[0] > 1) span.classList.add('again');
    if (token.out && token.text) {
      span.classList.add('out');
      fill(span, token.text);
    } else if (token.out) {
      span.classList.add('chip');
      span.textContent = token.label;
    } else {
      span.textContent = token.text.replace(/\r?\n/g, '⏎').replace(/\t/g, '→') || token.label;
    }
    tokens.push(token);
    spans.push(span);
    return span;
  }

  function append(shown) {
    let fragment = document.createDocumentFragment();
    const close = () => { line ? line.append(fragment) : box.append(put(line = make('div', 'line'), fragment)); };
    for (const token of shown) {
      fragment.append(draw(token));
      if (!token.out || !token.text.endsWith('\n')) continue;
      close();
      line = null;
      fragment = document.createDocumentFragment();
    }
    if (fragment.childNodes.length) close();
  }

  function clear() {
    box.replaceChildren();
    tokens.length = spans.length = 0;
    line = null;
    current = -1;
  }

  const spanAt = (index) => spans[index];
  const hidden = (index) => !spanAt(index).getClientRects().length;

  function move(to, step) {
    let index = Math.max(0, Math.min(tokens.length - 1, to));
    while (index >= 0 && index < tokens.length && hidden(index)) index += step;
    if (index < 0 || index >= tokens.length) return;
    spanAt(current)?.classList.remove('focused');
    current = index;
    const span = spanAt(index);
    span.classList.add('focused');
    span.scrollIntoView({ block: 'nearest' });
    listeners.focus(tokens[index], span);
  }

  function moveRound(step) {
    const from = tokens[current]?.round ?? 0;
    const index = tokens.findIndex((token) => token.round === from + step);
    if (index >= 0) move(index, 1);
  }

  box.addEventListener('keydown', (event) => {
    if (!tokens.length || event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = {
      ArrowRight: () => move(current + 1, 1),
      ArrowLeft: () => move(current < 0 ? tokens.length - 1 : current - 1, -1),
      ArrowDown: () => moveRound(1),
      ArrowUp: () => moveRound(-1),
      Home: () => move(0, 1),
      End: () => move(tokens.length - 1, -1),
      Enter: () => current >= 0 && listeners.pin(tokens[current], spanAt(current)),
      Escape: () => listeners.leave(true),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  const tokenOf = (event) => event.target.closest?.('.tok');
  box.addEventListener('click', (event) => {
    const span = tokenOf(event);
    if (!span || !document.getSelection().isCollapsed) return;
    spanAt(current)?.classList.remove('focused');
    current = Number(span.dataset.i);
    listeners.pin(tokens[current], span);
  });
  box.addEventListener('pointerover', (event) => {
    const span = tokenOf(event);
    if (span && event.pointerType !== 'touch') listeners.hover(tokens[span.dataset.i], span);
  });
  box.addEventListener('pointerleave', () => listeners.leave(false));
  box.addEventListener('blur', () => {
    spanAt(current)?.classList.remove('focused');
    listeners.leave(false);
  });
  box.addEventListener('copy', (event) => {
    event.clipboardData.setData('text/plain', selectedOutput(box, document.getSelection()));
    event.preventDefault();
  });

  const text = () => tokens.filter((token) => token.out).map((token) => token.text).join('');
  const spanOf = (token) => spans[tokens.indexOf(token)] || null;
  return { append, clear, text, tokens, spanOf };
}

/* The output text inside a selection, cut exactly at its ends. */
function selectedOutput(box, selection) {
  const pieces = [];
  for (let i = 0; i < selection.rangeCount; i++) {
    const range = selection.getRangeAt(i);
    for (const span of box.querySelectorAll('.out')) {
      if (!range.intersectsNode(span)) continue;
      const part = document.createRange();
      part.selectNodeContents(span);
      if (range.compareBoundaryPoints(Range.START_TO_START, part) > 0) part.setStart(range.startContainer, range.startOffset);
      if (range.compareBoundaryPoints(Range.END_TO_END, part) < 0) part.setEnd(range.endContainer, range.endOffset);
      pieces.push(part.toString());
    }
  }
  return pieces.join('');
}

/* Puts text on the clipboard, also where the page is not served securely. */
async function copyText(text) {
  if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
  let done = false;
  const write = (event) => {
    event.clipboardData.setData('text/plain', text);
    event.preventDefault();
    event.stopImmediatePropagation();
    done = true;
  };
  document.addEventListener('copy', write, { capture: true, once: true });
  document.execCommand('copy');
  document.removeEventListener('copy', write, { capture: true });
  if (!done) throw new Error(WORDS.copy_failed);
  return undefined;
}
