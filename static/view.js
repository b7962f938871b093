/* Puts the view together: status, figures, toolbar, strip, details, charts, fed line by line.
   Given by the page: element, props, watch, trigger. */
const view = element.querySelector('.spec');
view.setAttribute('role', 'region');
view.setAttribute('aria-label', WORDS.view);

const status = make('div', 'status');
const figureRow = make('div', 'figures');
const output = make('div', 'output');
const toolbar = make('div', 'toolbar');
const box = make('div', 'strip');
const idle = make('p', 'idle', WORDS.idle);
const panel = make('div', 'pinned');
const chartRow = make('div', 'charts');
const live = make('div', 'sr-only');
const lossy = make('p', 'lossy');
lossy.hidden = true;
panel.hidden = true;
live.setAttribute('aria-live', 'polite');
box.tabIndex = 0;
box.setAttribute('role', 'group');
box.setAttribute('aria-label', WORDS.strip);
put(output, toolbar, put(make('div', 'page'), idle, box), panel);
put(view, status, lossy, figureRow, output, chartRow, live);

const showStatus = statusLine(status);
const showFigures = figureCards(figureRow, () => trigger('expand', { tab: WHY_TAB }));
const charts = chartBoard(chartRow, view);
const tip = tokenTip(view);
let pinnedSpan = null;
function markPinned(span) {
  pinnedSpan?.classList.remove('pinned-token');
  pinnedSpan = span;
  span?.classList.add('pinned-token');
}
function announce(token) {
  trigger('select', { round: token.round, position: token.position, token: token.text, kind: token.kind });
}
const details = detailPanel(panel, {
  show: (token, node) => tip.show(token, node),
  hide: () => tip.hide(),
  choose: (token) => { tip.hide(); markPinned(strip.spanOf(token)); announce(token); },
  inspect: (token) => trigger('expand', { round: token.round }),
  closed: (inside) => { tip.hide(); markPinned(null); if (inside) box.focus({ preventScroll: true }); },
});
const strip = tokenStrip(box, {
  hover: (token, span) => tip.show(token, span),
  focus: (token, span) => { tip.show(token, span); live.textContent = spoken(token); },
  leave: (close) => { tip.hide(); if (close) details.close(); },
  pin: (token, span) => {
    const again = span === pinnedSpan;
    details.close();
    if (again) return;
    markPinned(span);
    details.open(token);
    announce(token);
  },
});

/* Toolbar: legend, two switches, copy. */
function toggle(label, className) {
  const wrap = make('label', 'switch');
  const input = make('input');
  input.type = 'checkbox';
  input.addEventListener('change', () => output.classList.toggle(className, input.checked));
  return put(wrap, input, make('span', '', label));
}
const legend = kindLegend(Object.keys(KIND_NAMES));
const copy = make('button', 'copy', WORDS.copy);
copy.type = 'button';
copy.addEventListener('click', async () => {
  let word = WORDS.copied;
  try { await copyText(strip.text()); } catch { word = WORDS.copy_failed; }
  copy.textContent = word;
  setTimeout(() => { copy.textContent = WORDS.copy; }, 1600);
});
const tools = put(make('div', 'tools'), toggle(WORDS.hide_rejected, 'hide-rejected'), toggle(WORDS.show_spaces, 'show-spaces'), copy);
put(toolbar, legend, tools);

/* The run, as the log tells it. */
let state = {};
let pending = [];
let appending = 0; // timer
let nextAppend = 0;

function reset() {
  state = { open: false, limit: 0, figures: {}, last: '', trees: false };
  pending = [];
  nextAppend = 0;
  strip.clear();
  details.close();
  tip.hide();
  showFigures({});
  showDrift({});
  charts.clear('');
  idle.textContent = WORDS.idle;
  showStatus('none', WORDS.no_run);
}

const readers = {
  run(line) {
    Object.assign(state, { open: true, id: line.id });
    view.dataset.run = line.id;
    charts.clear(line.id);
    charts.settle(true);
    idle.textContent = '';
    showStatus('busy', WORDS.starting, '', null);
  },
  recording(line) { state.recording = line.words; },
  started(line) { state.limit = line.max_new_tokens || 0; },
  progress(line) { showStatus('busy', line.message, isNumber(line.fraction) ? percent(line.fraction, 0) : '', line.fraction); },
  prefilled() { showStatus('busy', WORDS.waiting, '', null); },
  baseline(line) {
    state.figures.baseline_tokens_per_second = line.tokens_per_second;
    showFigures(state.figures, state.trees);
  },
  round(line) {
    pending.push(...roundTokens(line, state.last));
    state.trees ||= Boolean(line.parents);
    state.last = line.committed.at(-1)?.[3] || state.last;
    charts.addRow(line.row);
  },
  figures(line) {
    const f = (state.figures = line.figures);
    showFigures(f, state.trees);
    showDrift(f);
    charts.addPositions(line.positions);
    charts.changed();
    const words = { rounds: f.num_rounds, tokens: f.num_tokens, limit: state.limit };
    showStatus('busy', say(WORDS.running, words), '', state.limit ? f.num_tokens / state.limit : null);
  },
  end(line) { finish(line, 'done', WORDS.reasons[line.reason] || line.reason, summary(line.figures)); },
  failed(line) {
    const made = line.figures.num_tokens ? summary(line.figures) : '';
    finish(line, 'failed', `${line.message} ${line.hint}`.trim(), made);
  },
};

/* A run whose text is not the target's says so, and how far off it is. */
function showDrift(f) {
  lossy.hidden = !isNumber(f.drift);
  if (!lossy.hidden) lossy.replaceChildren(make('b', '', WORDS.lossy), ` ${say(WORDS.drift, { value: percent(f.drift) })}`);
}

function finish(line, how, text, more) {
  state.open = false;
  view.dataset.over = state.id;
  showFigures(line.figures, state.trees);
  showDrift(line.figures);
  charts.addPositions(line.positions);
  if (state.recording) showStatus('recording', state.recording, more ? `${text} · ${more}` : text);
  else showStatus(how, text, more);
  live.textContent = text;
  if (!strip.tokens.length && !pending.length) idle.textContent = how === 'failed' ? '' : WORDS.empty_output;
}

/* Appends what has come, and keeps the end in sight unless the reader has scrolled up. A long text costs
   more to lay out, so it is appended more seldom: at most a ninth of the time goes into it. */
function append() {
  clearTimeout(appending);
  appending = 0;
  if (!pending.length) return;
  const from = performance.now();
  const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 48;
  strip.append(pending);
  pending = [];
  if (atEnd) box.scrollTop = box.scrollHeight;
  else void box.scrollHeight; // lays out now, so that the cost is known
  nextAppend = performance.now() + 8 * (performance.now() - from);
}

function appendSoon() {
  const wait = nextAppend - performance.now();
  if (wait <= 8) append();
  else appending ||= setTimeout(append, wait);
}

const read = logReader(reset, (line) => readers[line.e]?.(line));
function sync() {
  if (!read(props.value || '')) return;
  if (state.open) appendSoon();
  else {
    append();
    charts.settle(false);
  }
}

/* The server says that no run of this page goes on: a log without a last line was cut off. */
window.addEventListener('spec-idle', () => setTimeout(() => {
  sync();
  if (!state.open) return;
  state.open = false;
  view.dataset.over = state.id;
  showStatus('done', state.figures.num_tokens ? WORDS.reasons.stopped : WORDS.reasons.lost, '');
  charts.settle(false);
}, 300));

reset();
watch('value', sync);
sync();
