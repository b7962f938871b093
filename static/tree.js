/* The draft of one round as a picture, where it is a tree: every branch tried, the path kept drawn strong.
   A tree to screen readers and to the arrow keys as well; it scrolls inside its frame. `chosen` is the token
   whose details are open; choosing another one calls `listeners.choose`. */
function treePicture(chosen, listeners) {
  const { tree } = chosen;
  const { children, kept } = treeShape(tree);
  const { rows, depths } = treeLayout(children, kept);
  const frame = make('div', 'tree-frame');
  const items = new Map();

  function draw(token, parent) {
    const below = children(token);
    const item = make('div', `node${kept(token) ? ' kept' : ''}`);
    item.style.gridArea = `${rows.get(token) + 1} / ${depths.get(token) + 1}`;
    item.style.setProperty('--rise', rows.get(token) - rows.get(parent ?? null));
    item.classList.toggle('parent', below.length > 0);
    item.classList.toggle('on', below.some(kept));
    item.classList.toggle('up', rows.get(token) < rows.get(parent));
    item.classList.toggle('down', rows.get(token) > rows.get(parent));
    frame.append(token ? fillNode(item, token, below.length) : fillRoot(item, tree));
    items.set(token, item);
    for (const child of below) draw(child, token);
  }

  function mark(token) {
    for (const [other, item] of items) {
      if (!other) continue;
      item.tabIndex = other === token ? 0 : -1;
      item.setAttribute('aria-selected', String(other === token));
    }
  }

  const tokenOf = (event) => [...items].find(([token, item]) => token && item.contains(event.target))?.[0];
  const show = (event) => { const token = tokenOf(event); token ? listeners.show(token, items.get(token).firstChild) : listeners.hide(); };
  function choose(token) {
    mark(token);
    items.get(token).focus({ preventScroll: true });
    listeners.choose(token);
  }
  frame.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const token = tokenOf(event);
    if (event.key === 'Escape') listeners.close();
    else if (token && (event.key === 'Enter' || event.key === ' ')) choose(token);
    else {
      const next = treeStep(event.key, token, children, { rows, depths });
      if (!next) return;
      items.get(token).tabIndex = -1;
      items.get(next).tabIndex = 0;
      items.get(next).focus();
    }
    event.preventDefault();
  });
  frame.addEventListener('click', (event) => { const token = tokenOf(event); if (token) choose(token); });
  frame.addEventListener('pointerover', (event) => { if (event.pointerType !== 'touch') show(event); });
  frame.addEventListener('pointerleave', listeners.hide);
  frame.addEventListener('focusin', (event) => { if (event.target.matches(':focus-visible')) show(event); });
  frame.addEventListener('focusout', listeners.hide);
  frame.addEventListener('scroll', listeners.hide);

  draw(null, undefined);
  mark(chosen);
  return { figure: treeFigure(tree, frame), reveal: () => revealNode(frame, items.get(chosen)) };
}

/* Who follows whom, in the order of trial; the target's own token ends the path kept. `null` is the root. */
function treeShape(tree) {
  const path = tree.tested.filter((token) => token.kind === 'accepted');
  const followers = new Map([[null, []], ...tree.drafted.map((token) => [token, []])]);
  tree.drafted.forEach((token, node) => followers.get(tree.drafted[tree.parents[node]] || null).push(token));
  const turn = (token) => { const index = tree.tested.indexOf(token); return index < 0 ? Infinity : index; };
  for (const list of followers.values()) list.sort((a, b) => (turn(a) === turn(b) ? 0 : turn(a) - turn(b)));
  const end = followers.get(path[path.length - 1] || null);
  end.splice(end.filter((token) => token.kind !== 'untested').length, 0, ...tree.own);
  const strong = new Set([null, ...path, ...tree.own]);
  return { children: (token) => followers.get(token) || [], kept: (token) => strong.has(token) };
}

/* Where an arrow key leads: along a branch, or to the neighbour in the column. */
function treeStep(key, token, children, { rows, depths }) {
  const all = [...rows.keys()].filter(Boolean);
  if (key === 'ArrowRight') return children(token).find((child) => rows.get(child) === rows.get(token)) || children(token)[0];
  if (key === 'ArrowLeft') return all.find((other) => children(other).includes(token));
  if (key === 'Home' || key === 'End') return all[key === 'Home' ? 0 : all.length - 1];
  if (key !== 'ArrowDown' && key !== 'ArrowUp') return undefined;
  const step = key === 'ArrowDown' ? 1 : -1;
  const away = (other) => step * (rows.get(other) - rows.get(token));
  const column = all.filter((other) => depths.get(other) === depths.get(token) && away(other) > 0);
  return column.sort((a, b) => away(a) - away(b))[0];
}

function fillNode(item, token, numChildren) {
  item.setAttribute('role', 'treeitem');
  item.setAttribute('aria-level', token.position);
  item.setAttribute('aria-label', spoken(token));
  if (numChildren) item.setAttribute('aria-expanded', 'true');
  const number = isNumber(token.p) ? `p ${chance(token.p)}` : token.q < 1 ? `q ${chance(token.q)}` : '';
  return put(item, make('span', `tok ${token.kind}`, visible(token.text) || token.label), make('small', '', number));
}

function fillRoot(item, tree) {
  item.classList.add('root');
  item.setAttribute('role', 'none');
  const words = tree.before ? [visible(tree.before), WORDS.tree_context] : [WORDS.tree_prompt, ''];
  return put(item, make('span', tree.before ? 'tok' : 'tok word', words[0]), make('small', '', words[1]));
}

function treeFigure(tree, frame) {
  const kinds = [...tree.drafted, ...tree.own].map((token) => token.kind);
  const words = { round: tree.round, drafted: tree.drafted.length, tested: tree.tested.length };
  const title = say(WORDS.tree, { ...words, kept: kinds.filter((kind) => kind === 'accepted').length });
  frame.setAttribute('role', 'tree');
  frame.setAttribute('aria-label', `${title}. ${WORDS.tree_keys}`);
  const present = kindLegend(Object.keys(KIND_NAMES).filter((kind) => kinds.includes(kind)));
  const figure = put(make('figure', 'tree'), put(make('figcaption'), make('b', '', title), present), frame);
  return put(figure, make('p', 'why', WORDS.tree_hint));
}

/* Scrolls the frame, never the page, until a node is in sight. */
function revealNode(frame, item) {
  const margin = 24;
  const far = item.offsetLeft + item.offsetWidth + margin - frame.clientWidth;
  const low = item.offsetTop + item.offsetHeight + margin - frame.clientHeight;
  frame.scrollTo(Math.max(0, Math.min(far, item.offsetLeft - margin)), Math.max(0, Math.min(low, item.offsetTop - margin)));
}
