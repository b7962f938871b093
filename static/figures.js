/* The big figures and the status line. Values come ready from the server; here they are only written. */
function figureCards(row, askWhy) {
  const cards = {};
  const why = make('button', 'why-link', WORDS.why);
  why.type = 'button';
  why.hidden = true;
  why.addEventListener('click', askWhy);
  for (const { id, label, definition } of FIGURES) {
    const card = make('div', `figure ${id}`);
    const meaning = make('p', 'definition', definition);
    meaning.id = `definition-${id}-${Math.random().toString(36).slice(2, 8)}`;
    meaning.setAttribute('role', 'tooltip');
    card.tabIndex = 0;
    card.setAttribute('role', 'group');
    card.setAttribute('aria-label', label);
    card.setAttribute('aria-describedby', meaning.id);
    const value = make('strong', '', WORDS.none);
    const below = make('span', 'below', '');
    row.append(put(card, make('span', 'label', label), value, below, meaning));
    cards[id] = { card, value, below };
  }
  cards.speedup.card.append(why);

  function write(id, value, below) {
    if (cards[id].value.textContent !== value) cards[id].value.textContent = value;
    if (cards[id].below.textContent !== below) cards[id].below.textContent = below;
  }

  return function show(f, trees) {
    const speedup = isNumber(f.speedup);
    const note = !speedup ? WORDS.no_baseline : f.speedup < 1 ? WORDS.slower : WORDS.against_plain;
    why.hidden = !speedup;
    write('speedup', speedup ? `${f.speedup.toFixed(2)}×` : WORDS.none, note);
    cards.speedup.card.classList.toggle('slow', speedup && f.speedup < 1);
    const tested = { accepted: f.num_accepted, tested: f.num_tested };
    write('alpha', percent(f.alpha), f.num_tested ? say(trees ? WORDS.of_positions : WORDS.of_tested, tested) : WORDS.nothing_tested);
    write('acceptance_length', fixed(f.acceptance_length, 2), WORDS.per_pass);
    const plain = isNumber(f.baseline_tokens_per_second);
    const against = plain ? say(WORDS.plain_speed, { value: fixed(f.baseline_tokens_per_second, 1) }) : WORDS.no_baseline;
    write('tokens_per_second', fixed(f.tokens_per_second, 1), against);
  };
}

function statusLine(line) {
  const what = make('span', 'what');
  const more = make('span', 'more');
  const bar = make('b', 'bar');
  const fill = make('b');
  put(line, make('i', 'dot'), what, more, put(bar, fill));

  function show(state, text, detail = '', fraction = undefined) {
    line.dataset.state = state;
    what.textContent = text;
    more.textContent = detail;
    bar.hidden = fraction === undefined;
    bar.classList.toggle('unknown', fraction === null);
    fill.style.width = isNumber(fraction) ? `${Math.min(100, 100 * fraction)}%` : '';
  }
  return show;
}

function summary(f) {
  const parts = [say(WORDS.summary, { tokens: f.num_tokens, rounds: f.num_rounds, seconds: fixed(f.decode_s, 2) })];
  if (f.num_prompt_tokens) parts.push(say(WORDS.prompt_time, { tokens: f.num_prompt_tokens, seconds: fixed(f.prefill_s, 2) }));
  if (f.decode_s) {
    const share = (name) => percent(f[`${name}_s`] / f.decode_s, 0);
    parts.push(say(WORDS.split, { verify: share('verify'), draft: share('draft'), other: share('other') }));
  }
  if (isNumber(f.draft_efficiency)) parts.push(say(WORDS.efficiency, { value: percent(f.draft_efficiency, 0) }));
  return parts.join(' · ');
}
