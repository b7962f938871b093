/* One round of the log as the tokens to show, in order: accepted, then the rejected one, then what was
   never tested, then the target's own. `out` marks what belongs to the output. Of a tree only what was
   tested is shown, refused siblings before the accepted one; `numUntested` counts the rest. */
function roundTokens(round) {
  const tests = new Map();
  round.tested.forEach(([node, p, q, u, accepted, overlap], index) => {
    tests.set(node, { p, q, u, overlap, accepted: Boolean(accepted), tops: round.tops[index] });
  });
  const kept = round.committed.filter((token) => token[1] === 'accepted');
  const own = round.committed.filter((token) => token[1] !== 'accepted');
  const shown = [];
  const depths = [];
  round.parents?.forEach((parent) => depths.push(parent < 0 ? 1 : depths[parent] + 1));
  const order = round.parents ? [...tests.keys()] : [...round.drafted.keys()];
  const tree = round.parents ? { numUntested: round.drafted.length - tests.size, tree: round } : {};
  let numKept = 0;
  order.forEach((node) => {
    const [id, text, q] = round.drafted[node];
    const test = tests.get(node);
    const place = { round: round.n, position: depths[node] || node + 1, id, q, ...tree };
    if (test && test.accepted && numKept < kept.length) {
      const [, kind, out, label] = kept[numKept++];
      shown.push({ ...place, ...test, kind, text: out, label: label || text, out: true });
    } else if (test && !test.accepted) {
      shown.push({ ...place, ...test, kind: 'rejected', text, label: text, out: false });
    } else {
      shown.push({ ...place, kind: 'untested', text, label: text, out: false });
    }
  });
  for (const [id, kind, text, label, p] of own) {
    const index = kind === 'residual' ? round.tested.length - 1 : round.tested.length;
    const tops = round.tops[Math.max(0, index)];
    shown.push({ round: round.n, position: numKept + 1, id, kind, text, label, p, tops, out: true, ...tree });
  }
  return shown;
}

/* White space of a token made visible, for labels that stand alone; bytes are written ⟨E2 80⟩ already. */
function visible(text) {
  if (/^⟨[0-9A-F ]+⟩$/.test(text)) return text;
  return text.replace(/\r/g, '␍').replace(/\n/g, '⏎').replace(/\t/g, '→').replace(/ /g, '␣');
}
