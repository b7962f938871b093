/* Where the nodes of a tree stand: a column per depth, rows counted from the context's own.
   The path kept is one straight line; siblings refused before it stand above, those never tried below.
   Branches are pushed together as far as no column holds one twice, so lines never cross. */
function treeLayout(children, kept) {
  const rows = new Map();
  const depths = new Map();

  /* The subtree of a node by itself: its nodes' rows, and by depth the first and last row taken. */
  function place(node, depth) {
    depths.set(node, depth);
    const block = { rows: new Map([[node, 0]]), first: { [depth]: 0 }, last: { [depth]: 0 } };
    const blocks = children(node).map((child) => place(child, depth + 1));
    const straight = Math.max(0, children(node).findIndex(kept));
    if (blocks.length) add(block, blocks[straight], 0);
    for (const below of blocks.slice(straight + 1)) add(block, below, shift(below.first, block.last, Math.max) + 1);
    for (const above of blocks.slice(0, straight).reverse()) add(block, above, shift(above.last, block.first, Math.min) - 1);
    return block;
  }

  function shift(mine, theirs, furthest) {
    return furthest(...Object.keys(mine).filter((depth) => depth in theirs).map((depth) => theirs[depth] - mine[depth]));
  }

  function add(block, other, by) {
    for (const [node, row] of other.rows) block.rows.set(node, row + by);
    for (const depth of Object.keys(other.first)) {
      block.first[depth] = Math.min(block.first[depth] ?? Infinity, other.first[depth] + by);
      block.last[depth] = Math.max(block.last[depth] ?? -Infinity, other.last[depth] + by);
    }
  }

  const whole = place(null, 0);
  const top = Math.min(...Object.values(whole.first));
  for (const [node, row] of whole.rows) rows.set(node, row - top);
  return { rows, depths };
}
