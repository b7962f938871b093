/* Reads the growing log: every line once, and from the start again when a new run begins.
   The first line of a run holds its id, so two runs never look alike. */
function logReader(onReset, onLine) {
  let offset = 0;
  let head = '';
  return (log) => {
    if (log.length < offset || !log.startsWith(head)) {
      offset = 0;
      head = '';
      onReset();
    }
    const end = log.lastIndexOf('\n') + 1;
    if (end <= offset) return false;
    for (const line of log.slice(offset, end).split('\n')) if (line) onLine(JSON.parse(line));
    offset = end;
    head = log.slice(0, 80);
    return true;
  };
}
