/* Small ways to make elements and to write numbers.
   Text of models and of people only ever goes through textContent. */
function make(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function put(parent, ...children) {
  parent.append(...children.filter(Boolean));
  return parent;
}

function say(sentence, values) {
  return sentence.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);
const fixed = (value, digits) => (isNumber(value) ? value.toFixed(digits) : WORDS.none);

function percent(value, digits = 1) {
  return isNumber(value) ? `${(100 * value).toFixed(digits)} %` : WORDS.none;
}

/* A probability as people read it: no false zero, no false one. */
function chance(value) {
  if (!isNumber(value)) return WORDS.none;
  if (value > 0 && value < 0.0005) return value.toExponential(1);
  return value > 0.9995 && value < 1 ? '> 0.999' : value.toFixed(3);
}
