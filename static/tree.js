/* The draft of one round as a picture, where it is a tree: every branch tried, the path kept drawn strong.
   A nested list, so that it reads aloud as well; it scrolls inside its frame. */
function treePicture(round) {
  const children = new Map();
  round.parents.forEach((parent, node) => children.set(parent, [...(children.get(parent) || []), node]));
  const tests = new Map(round.tested.map(([node, p, , , accepted]) => [node, { p, accepted: Boolean(accepted) }]));
  const path = round.tested.filter((test) => test[4]).map((test) => test[0]);
  const own = round.committed.filter((token) => token[1] !== 'accepted');
  const place = new Map([...tests.keys()].map((node, index) => [node, index]));
  const order = (nodes) => [...nodes].sort((a, b) => (place.get(a) ?? 99) - (place.get(b) ?? 99) || a - b);

  function node(kind, text, facts, kept) {
    const item = make('li', kept ? 'kept' : '');
    const label = make('span', `tok ${kind}`, visible(text) || '∅');
    label.title = KIND_NAMES[kind] ? `${KIND_NAMES[kind]}${facts ? ` · ${facts}` : ''}` : facts;
    return put(item, put(make('div', 'node'), label, facts ? make('small', '', facts) : null));
  }

  function branches(parent) {
    const list = make('ul');
    for (const index of order(children.get(parent) || [])) {
      const [, text, q] = round.drafted[index];
      const test = tests.get(index);
      const kind = test ? (test.accepted ? 'accepted' : 'rejected') : 'untested';
      const facts = test ? `p ${chance(test.p)}` : q < 1 ? `q ${chance(q)}` : '';
      list.append(put(node(kind, text, facts, path.includes(index)), branches(index)));
    }
    if (parent === (path.length ? path[path.length - 1] : -1)) {
      for (const [, kind, text, label, p] of own) list.append(node(kind, text || label, `p ${chance(p)}`, true));
    }
    return list.children.length ? list : null;
  }

  const words = { round: round.n, drafted: round.parents.length, tested: tests.size, kept: path.length };
  const frame = make('div', 'tree-frame');
  frame.tabIndex = 0;
  frame.setAttribute('role', 'group');
  frame.setAttribute('aria-label', say(WORDS.tree, words));
  const root = put(make('li', 'kept root'), put(make('div', 'node'), make('span', 'place', WORDS.tree_root)), branches(-1));
  put(frame, put(make('ul'), root));
  return put(make('figure', 'tree'), put(make('figcaption'), make('b', '', say(WORDS.tree, words)), make('span', '', WORDS.tree_hint)), frame);
}
