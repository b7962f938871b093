/* The four charts: plotly figures fed from the log's columns, drawn as seldom as they can be: one at a
   time, in turn, within a thirteenth of the time while a run streams, and none that is out of sight. */
const MIN_PAUSE_MS = 150;
const MAX_PAUSE_MS = 500;
const COST_FACTOR = 12;

let plotlyLoading = null;
function loadPlotly() {
  if (window.Plotly) return Promise.resolve(window.Plotly);
  plotlyLoading ??= new Promise((resolve, reject) => {
    const code = document.createElement('script');
    const root = (window.gradio_config?.root || '').replace(/\/$/, '');
    code.src = `${root}/${PLOTLY_PATH}`;
    code.onload = () => resolve(window.Plotly);
    code.onerror = () => reject(new Error(WORDS.no_plotly));
    document.head.append(code);
  });
  return plotlyLoading;
}

function chartBoard(row, view) {
  const boxes = CHARTS.map((spec) => {
    const card = make('figure', 'chart');
    const plot = make('div', 'plot');
    const empty = make('p', 'empty');
    plot.setAttribute('role', 'img');
    plot.setAttribute('aria-label', `${spec.title}: ${spec.caption}`);
    const caption = put(make('figcaption'), make('b', '', spec.title), make('span', '', spec.caption));
    row.append(put(card, caption, put(make('div', 'frame'), plot, empty)));
    return { spec, card, plot, empty, shown: false, stale: false, held: false };
  });
  let data = null;
  let run = '';
  let timer = 0;
  let cost = 0;
  let turn = 0;
  let running = false;

  function clear(id) {
    run = id;
    data = { rounds: Object.fromEntries(COLUMNS.map((name) => [name, []])), positions: null };
    for (const box of boxes) { box.stale = true; box.empty.textContent = ''; }
  }

  function addRow(values) {
    COLUMNS.forEach((name, i) => data.rounds[name].push(values[i]));
  }

  function addPositions(columns) {
    data.positions = columns;
  }

  /* Draws the next chart that waits, and comes back for the others. */
  function drawNext() {
    timer = 0;
    if (document.hidden || !window.Plotly) return;
    const waiting = boxes.map((_, i) => boxes[(turn + i) % boxes.length]).filter((box) => box.stale && box.shown && !box.held);
    if (!waiting.length) return;
    const from = performance.now();
    drawChart(waiting[0], data, run, pageColors(view), running);
    turn = boxes.indexOf(waiting[0]) + 1;
    cost = performance.now() - from;
    if (waiting.length > 1) drawSoon();
  }

  function drawSoon() {
    timer ||= setTimeout(drawNext, running ? Math.min(MAX_PAUSE_MS, Math.max(MIN_PAUSE_MS, COST_FACTOR * cost)) : 0);
  }

  function changed() {
    for (const box of boxes) box.stale = true;
    if (boxes.some((box) => box.shown)) drawSoon();
  }

  function settle(isRunning) {
    running = isRunning;
    if (running) return;
    clearTimeout(timer);
    timer = 0;
    changed();
  }

  /* A chart that is being dragged over keeps still until the pointer lets go. */
  for (const box of boxes) box.card.addEventListener('pointerdown', () => { box.held = true; }, true);
  for (const end of ['pointerup', 'pointercancel']) {
    window.addEventListener(end, () => {
      for (const box of boxes) box.held = false;
      drawSoon();
    }, true);
  }

  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) boxes.find((box) => box.card === entry.target).shown = entry.isIntersecting;
    if (!boxes.some((box) => box.shown)) return;
    loadPlotly().then(drawSoon, (error) => boxes.forEach((box) => { box.empty.textContent = error.message; }));
  }, { rootMargin: '120px' });
  boxes.forEach((box) => seen.observe(box.card));
  document.addEventListener('visibilitychange', changed);
  new MutationObserver(changed).observe(document.body, { attributes: true, attributeFilter: ['class'] });
  clear('');
  return { clear, addRow, addPositions, changed, settle };
}

function pageColors(view) {
  const style = getComputedStyle(view);
  return (name) => style.getPropertyValue(`--${name}`).trim();
}

function drawChart(box, data, run, colors, running) {
  const { spec } = box;
  const columns = data[spec.source] || {};
  const traces = spec.traces.map((trace, i) => chartTrace(trace, spec.names[i], columns, colors));
  const filled = traces.some((trace) => trace.y.some(isNumber));
  box.stale = false;
  box.empty.textContent = filled || running || !run ? '' : spec.empty;
  const config = { displayModeBar: false, responsive: true, doubleClick: 'reset' };
  window.Plotly.react(box.plot, traces, chartLayout(spec, run, colors, filled), config);
}

function chartTrace(trace, name, columns, colors) {
  const color = colors(trace.color);
  const style = structuredClone(trace.style);
  if (style.type === 'bar' || style.mode === 'markers') style.marker = { ...style.marker, color };
  else style.line = { ...style.line, color };
  if (style.stackgroup) style.fillcolor = color;
  if (trace.customdata) {
    style.customdata = (columns[trace.customdata[0]] || []).map((_, i) => trace.customdata.map((key) => columns[key][i]));
  }
  return { ...style, name, x: (columns[trace.x] || []).slice(), y: (columns[trace.y] || []).slice() };
}

function chartLayout(spec, run, colors, filled) {
  const axis = {
    gridcolor: colors('grid'), linecolor: colors('grid'), zeroline: false,
    tickfont: { size: 11 }, fixedrange: false,
  };
  const given = structuredClone(spec.layout);
  const ink = colors('ink-soft');
  const layout = {
    height: 216, margin: { l: 44, r: 10, t: 8, b: 40 }, uirevision: run,
    paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)',
    font: { color: ink, size: 11, family: 'IBM Plex Sans, system-ui, sans-serif' },
    dragmode: matchMedia('(pointer: coarse)').matches ? false : 'zoom',
    hovermode: 'x unified', showlegend: spec.names.length > 1,
    hoverlabel: { bgcolor: colors('surface'), bordercolor: colors('line'), font: { color: colors('ink'), size: 12 } },
    legend: { orientation: 'h', x: 1, xanchor: 'right', y: 1.02, yanchor: 'bottom', font: { size: 11 }, itemclick: 'toggle' },
    ...given,
  };
  layout.xaxis = { ...axis, showgrid: false, title: { text: spec.xtitle, font: { size: 11 }, standoff: 6 }, ...given.xaxis };
  layout.yaxis = { ...axis, ...given.yaxis };
  if (!filled) layout.xaxis.range = [0, 10];
  if (!filled && !layout.yaxis.range) layout.yaxis.range = [0, 2];
  if (spec.reference !== undefined) {
    const line = { color: ink, width: 1.5, dash: 'dash' };
    layout.shapes = [{ type: 'line', xref: 'paper', x0: 0, x1: 1, y0: spec.reference, y1: spec.reference, line }];
    if (filled) layout.yaxis = { ...layout.yaxis, autorangeoptions: { include: [0, 1.2 * spec.reference] } };
  }
  return layout;
}
