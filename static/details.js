/* What is known about one token: the tip that follows the pointer and the panel that stays. */
function factRows(token) {
  const rows = [];
  if (isNumber(token.p)) rows.push([token.trial?.[0] > 1 ? WORDS.p_residual : WORDS.p, chance(token.p)]);
  if (isNumber(token.q)) rows.push([WORDS.q, token.q === 1 ? `1 · ${WORDS.certain}` : chance(token.q)]);
  if (isNumber(token.u)) rows.push([WORDS.u, chance(token.u)]);
  if (isNumber(token.overlap)) rows.push([WORDS.overlap, chance(token.overlap)]);
  return rows;
}

function placeOf(token) {
  const place = [`${WORDS.round} ${token.round}`, `${WORDS.position} ${token.position}`];
  if (token.trial) place.push(say(WORDS.trial, { turn: token.trial[0], tried: token.trial[1] }));
  return place;
}

function detailHead(token) {
  const head = make('div', 'detail-head');
  const chip = make('span', `tok ${token.kind}`, visible(token.text) || token.label);
  const place = [...placeOf(token), `${WORDS.token_id} ${token.id}`].join(' · ');
  return put(head, chip, make('b', '', KIND_NAMES[token.kind]), make('span', 'place', place));
}

/* The kinds of tokens as they look in the strip. */
function kindLegend(kinds) {
  const legend = make('ul', 'legend');
  for (const kind of kinds) {
    const item = make('li');
    item.title = KIND_DEFINITIONS[kind];
    legend.append(put(item, make('span', `tok ${kind}`, KIND_NAMES[kind])));
  }
  return legend;
}

function factList(token) {
  const list = make('dl', 'facts');
  for (const [name, value] of factRows(token)) put(list, put(make('div'), make('dt', '', name), make('dd', '', value)));
  return list;
}

function topList(title, candidates, token) {
  const column = put(make('div', 'top'), make('h4', '', title));
  const list = make('ol');
  for (const [text, prob, logit] of candidates) {
    const row = make('li', text === token.label || text === token.text ? 'mine' : '');
    const bar = make('i', 'bar');
    bar.style.width = `${Math.min(100, 100 * prob)}%`;
    const raw = isNumber(logit) ? make('small', '', say(WORDS.logit, { value: logit.toFixed(1) })) : null;
    list.append(put(row, bar, make('code', '', visible(text)), raw, make('span', '', chance(prob))));
  }
  return put(column, list);
}

const TOP_TITLES = [() => WORDS.top_target, () => WORDS.top_draft, () => WORDS.top_residual];

function topLists(token, count) {
  const box = make('div', 'tops');
  (token.tops || []).slice(0, count).forEach((candidates, i) => {
    if (candidates.length) box.append(topList(TOP_TITLES[i](), candidates, token));
  });
  return box.children.length ? box : null;
}

function spoken(token) {
  const facts = factRows(token).map(([name, value]) => `${name} ${value}`);
  return [visible(token.text) || token.label, KIND_NAMES[token.kind], ...placeOf(token), ...facts].join(', ');
}

function tokenTip(view) {
  const tip = make('div', 'tip');
  tip.hidden = true;
  view.append(tip);
  const hide = () => { tip.hidden = true; };
  function show(token, span) {
    tip.replaceChildren();
    put(tip, detailHead(token), factList(token), make('p', 'why', KIND_DEFINITIONS[token.kind]), topLists(token, 1));
    tip.hidden = false;
    const frame = view.getBoundingClientRect();
    const at = span.getClientRects()[0] || span.getBoundingClientRect();
    const left = Math.max(0, Math.min(at.left - frame.left, frame.width - tip.offsetWidth));
    const below = at.bottom + tip.offsetHeight + 16 < window.innerHeight || at.top < tip.offsetHeight + 16;
    tip.style.left = `${left}px`;
    tip.style.top = `${below ? at.bottom - frame.top + 8 : at.top - frame.top - tip.offsetHeight - 8}px`;
  }
  return { show, hide };
}

/* `listeners`: show and hide a tip, choose a token of the tree, inspect its round, closed. */
function detailPanel(panel, listeners) {
  function close() {
    if (panel.hidden) return;
    const inside = panel.contains(document.activeElement);
    panel.hidden = true;
    panel.replaceChildren();
    listeners.closed(inside);
  }
  function open(token) {
    const shut = make('button', 'close', '×');
    shut.type = 'button';
    shut.setAttribute('aria-label', WORDS.close);
    shut.addEventListener('click', close);
    const inspect = make('button', 'inspect', WORDS.inspect);
    inspect.type = 'button';
    inspect.addEventListener('click', () => listeners.inspect(token));
    const facts = make('div');
    const tops = make('div');
    function tell(chosen) {
      facts.replaceChildren();
      tops.replaceChildren();
      put(facts, detailHead(chosen), make('p', 'why', KIND_DEFINITIONS[chosen.kind]), factList(chosen), inspect);
      put(tops, topLists(chosen, 3));
    }
    const choose = (chosen) => { tell(chosen); listeners.choose(chosen); };
    const picture = token.tree ? treePicture(token, { ...listeners, choose, close }) : null;
    tell(token);
    panel.replaceChildren();
    put(panel, shut, facts, picture?.figure, tops);
    panel.hidden = false;
    picture?.reveal();
  }
  return { open, close };
}
