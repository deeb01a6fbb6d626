// What the other scripts use: the page's data, elements, colours of runs, and drawing when something comes into view.

const DATA = JSON.parse(document.getElementById("page-data").textContent);
const COLOURS = 12;

/** An element with properties and children; text is always text. */
function make(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && !name.startsWith("aria")) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

function all(selector, within = document) {
  return [...within.querySelectorAll(selector)];
}

function cssValue(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const colourOf = (run) => cssValue(`--c${run % COLOURS}`);
const nameOf = (run) => DATA.runs[run];
const dotOf = (run) => make("span", { className: `dot c${run % COLOURS}`, "aria-hidden": "true" });
const percent = (value) => (value === null || value === undefined ? "–" : (100 * value).toFixed(2));
const dashOf = (run) => (run >= COLOURS ? [6, 4] : []);

/** Every select of a label with options [value, words]. */
function chooser(words, options, changed) {
  const select = make("select", { onchange: () => changed(select.value) });
  for (const [value, text] of options) select.append(make("option", { value }, text));
  return { label: make("label", {}, words, select), select };
}

/** Things that are drawn once they come into view, and again when colours change. */
const drawn = new Map();
const watcher = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) drawNow(entry.target);
    }
  },
  { rootMargin: "300px" },
);

function drawInView(host, draw) {
  drawn.set(host, { draw, done: false });
  watcher.observe(host);
}

function drawNow(host) {
  const known = drawn.get(host);
  if (known && !known.done && host.clientWidth) {
    known.done = true;
    known.draw();
  }
}

function drawAll() {
  drawn.forEach((_, host) => drawNow(host));
}

function drawAgain() {
  for (const known of drawn.values()) {
    if (known.done) known.draw();
  }
}
