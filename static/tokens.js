/* One round of the log as its tokens. `shown` are those of the strip, in order: accepted, then the rejected
   one, then what was never tested, then the target's own; `out` marks what belongs to the output. Of a tree
   only what was tested is shown, refused siblings before the accepted one; `tree` has every token of it.
   `before` is the label of the context's last token, "" at the end of the prompt. */
function roundTokens(round, before) {
  const { parents } = round;
  const drafted = draftedTokens(round);
  const tested = round.tested.map(([node]) => drafted[node]);
  if (parents) numberTrials(round, drafted);
  const own = round.committed.filter((token) => token[1] !== 'accepted').map(([id, kind, text, label, p]) => {
    const tops = round.tops[Math.max(0, kind === 'residual' ? tested.length - 1 : tested.length)];
    const position = drafted.filter((token) => token.kind === 'accepted').length + 1;
    return { round: round.n, position, id, kind, text, label, p, tops, out: true };
  });
  const shown = [...(parents ? tested : drafted), ...own];
  if (parents) {
    const tree = { round: round.n, parents, drafted, tested, own, before };
    for (const token of [...drafted, ...own]) token.tree = tree;
  }
  return shown;
}

/* Every drafted token with its verdict, by node. */
function draftedTokens(round) {
  const tests = new Map();
  round.tested.forEach(([node, p, q, u, accepted, overlap], index) => {
    tests.set(node, { p, q, u, overlap, accepted: Boolean(accepted), tops: round.tops[index] });
  });
  const kept = round.committed.filter((token) => token[1] === 'accepted');
  const path = round.tested.filter((test) => test[4]).map((test) => test[0]);
  const depths = [];
  return round.drafted.map(([id, text, q], node) => {
    const parent = round.parents ? round.parents[node] : node - 1;
    depths.push(parent < 0 ? 1 : depths[parent] + 1);
    const test = tests.get(node);
    const place = { round: round.n, position: depths[node], id, q };
    const committed = kept[path.indexOf(node)];
    if (committed) return { ...place, ...test, kind: 'accepted', text: committed[2], label: committed[3] || text, out: true };
    const kind = test && !test.accepted ? 'rejected' : 'untested';
    return { ...place, ...(kind === 'rejected' ? test : {}), kind, text, label: text, out: false };
  });
}

/* Siblings are tried in turn at one position: which turn a token had, of how many. */
function numberTrials(round, drafted) {
  const turns = new Map();
  for (const [node] of round.tested) {
    const parent = round.parents[node];
    turns.set(parent, [...(turns.get(parent) || []), drafted[node]]);
  }
  for (const tried of turns.values()) {
    if (tried.length > 1) tried.forEach((token, i) => { token.trial = [i + 1, tried.length]; });
  }
}

/* White space of a token made visible, for labels that stand alone; bytes are written ⟨E2 80⟩ already. */
function visible(text) {
  if (/^⟨[0-9A-F ]+⟩$/.test(text)) return text;
  return text.replace(/\r/g, '␍').replace(/\n/g, '⏎').replace(/\t/g, '→').replace(/ /g, '␣');
}
