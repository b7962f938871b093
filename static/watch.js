/* The charts of a watched server, fed by its log; hidden until there is something to draw.
   Given by the page: element, props, watch. */
const view = element.querySelector('.spec');
const row = make('div', 'charts');
view.append(row);
const board = chartBoard(row, view);

const readers = {
  run(line) { board.clear(line.id); board.settle(true); },
  row(line) { row.hidden = false; board.addRow(line.row); },
  positions(line) { board.addPositions(line.columns); },
  end() { board.settle(false); },
};
const read = logReader(
  () => { row.hidden = true; board.clear(''); },
  (line) => readers[line.e]?.(line),
);
const sync = () => { if (read(props.value || '')) board.changed(); };
row.hidden = true;
watch('value', sync);
sync();
