// Charts by uPlot: lines over numbers or categories, curves, and points of two runs; a box with values follows the mouse.

const HEIGHT = 300;
const FONT = "12px system-ui, sans-serif";
const widths = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.chart && target.clientWidth)
      target.chart.setSize({ width: target.clientWidth, height: target.chart.height });
  }
});

/** Puts a chart into a host, in place of an earlier one, and keeps it as wide as the host. */
function plot(host, options, values) {
  if (host.chart) host.chart.destroy();
  host.chart = new uPlot(
    { width: host.clientWidth, height: HEIGHT, legend: { show: false }, ...options },
    values,
    host,
  );
  widths.observe(host);
  return host.chart;
}

function axis(label, more = {}) {
  const line = { stroke: cssValue("--line"), width: 1 };
  return {
    label,
    labelSize: 18,
    labelFont: FONT,
    font: FONT,
    stroke: cssValue("--quiet"),
    grid: line,
    ticks: { ...line, size: 4 },
    gap: 4,
    ...more,
  };
}

const inPercent = (_, splits) => splits.map((value) => (value === null ? "" : String(+(100 * value).toFixed(1))));

function lineOf(run, more = {}) {
  return {
    label: nameOf(run),
    stroke: colourOf(run),
    width: 2,
    dash: dashOf(run),
    points: { show: false },
    spanGaps: false,
    ...more,
  };
}

/** From a little below the least value to a little above the most, within 0 and 1. */
function shareRange(rows) {
  const known = rows.flat().filter((value) => value !== null);
  const least = Math.min(...known),
    most = Math.max(...known);
  const margin = Math.max(0.02, 0.06 * (most - least));
  return [Math.max(0, least - margin), Math.min(1, most + margin)];
}

/** The box that follows the mouse: `words(place)` gives its title and lines [run, text], best first. */
function valueBox(words) {
  const box = make("div", { className: "value-box", hidden: true });
  return {
    hooks: {
      init: (chart) => chart.over.append(box),
      setCursor: (chart) => {
        const { left, top, idx } = chart.cursor;
        const said = idx === null || idx === undefined || left < 0 ? null : words(idx);
        box.hidden = !said || !said.lines.length;
        if (box.hidden) return;
        box.replaceChildren(
          make("b", {}, said.title),
          ...said.lines.map(([run, text]) => make("span", {}, dotOf(run), nameOf(run), make("em", {}, text))),
        );
        const across = left > chart.over.clientWidth / 2 ? left - box.offsetWidth - 12 : left + 12;
        box.style.transform = `translate(${Math.max(0, across)}px, ${Math.max(0, Math.min(top, chart.over.clientHeight - box.offsetHeight))}px)`;
      },
    },
  };
}

/** Names of runs with boxes that show and hide them; `changed(place, shown)` as the reader ticks. */
function runBoxes(runs, changed, words = () => "") {
  const boxes = runs.map((run, place) => {
    const tick = make("input", { type: "checkbox", checked: true, onchange: () => changed(place, tick.checked) });
    return make("label", { className: "run-box" }, tick, dotOf(run), nameOf(run), words(run));
  });
  return make("div", { className: "run-boxes", role: "group", "aria-label": "runs shown" }, boxes);
}

/** Places on an axis, without those that stand too close to the one before. */
function apart(places, isWide) {
  const at = (value) => (isWide ? Math.log(value) : value);
  const least = (at(places.at(-1)) - at(places[0])) / 18;
  let last = -Infinity;
  return places.map((value) => {
    if (at(value) - last < least) return "";
    last = at(value);
    return value;
  });
}

/** How names stand below an axis: level where each has room, else aslant in one line, with the first one's start in sight. */
function namesBelow(host, names) {
  const pen = make("canvas").getContext("2d");
  pen.font = FONT;
  const widthOf = (line) => pen.measureText(line).width;
  const lines = names.flatMap((name) => name.split("\n"));
  const joined = names.map((name) => name.replace("\n", " "));
  const step = () => (host.clientWidth - 100) / (names.length - 0.3); // 100: the other axis and paddings
  const isLevel = () => step() > Math.max(...lines.map(widthOf)) + 12;
  const slope = (35 * Math.PI) / 180;
  // How far left of the axis a name begins that ends below its place.
  const reach = (name, place) => widthOf(name) * Math.cos(slope) - 30 - (place + 0.35) * step();
  return {
    words: () => (isLevel() ? names : joined),
    rotate: () => (isLevel() ? 0 : 35),
    size: () =>
      isLevel() ? 12 + 18 * (lines.length > names.length ? 2 : 1) : 18 + Math.max(...joined.map(widthOf)) * Math.sin(slope),
    left: () => (isLevel() ? 30 : Math.max(30, ...joined.map(reach))),
  };
}

/** Lines of runs over numbers (`lines`) or categories (`profile`), with boxes to show and hide them. */
function drawLines(host, given) {
  const isProfile = given.kind === "profile";
  const x = isProfile ? given.categories.map((_, place) => place) : given.x;
  const isWide = x[0] > 0 && x[x.length - 1] / x[0] > 8;
  const marked = { points: { show: true, size: isProfile ? 8 : 6, fill: cssValue("--paper") }, spanGaps: !isProfile };
  const series = given.runs.map((run) => lineOf(run, { ...marked, width: isProfile ? 1.5 : 2 }));
  const names = isProfile && given.categories.map((name, at) => name + (given.lower[at] ? "\n(less is better)" : ""));
  const words = (place) => ({
    title: isProfile ? names[place].replace("\n", " ") : `${given.axis} ${x[place].toLocaleString("en")}`,
    lines: given.runs
      .map((run, number) => [run, given.values[number][place]])
      .filter(([, value]) => value !== null)
      .sort((a, b) => (given.lower?.[place] ? a[1] - b[1] : b[1] - a[1]))
      .map(([run, value]) => [run, percent(value)]),
  });
  const below = isProfile && namesBelow(host, names);
  const named = {
    splits: () => x,
    values: below.words,
    rotate: below.rotate,
    size: below.size,
    labelSize: 0,
    label: "",
  };
  const counted = {
    splits: () => x,
    values: (_, splits) => apart(splits, isWide).map((value) => (value >= 1000 ? `${value / 1000}k` : value)),
    size: 34,
    filter: (_, splits) => splits,
  };
  const across = isProfile
    ? { time: false, range: [-0.35, x.length - 0.65] }
    : {
        time: false,
        distr: isWide ? 3 : 1,
        range: isWide
          ? [x[0] * 0.9, x[x.length - 1] * 1.1]
          : (_, least, most) => [least - 0.03 * (most - least), most + 0.03 * (most - least)],
      };
  const chart = plot(
    host,
    {
      height: isProfile ? 360 : HEIGHT,
      scales: { x: across, y: { range: shareRange(given.values) } },
      axes: [
        axis(given.axis || "", isProfile ? named : counted),
        axis(isProfile ? "" : `${given.y}, %`, { values: inPercent, size: 44, ...(isProfile ? { labelSize: 0 } : {}) }),
      ],
      cursor: { y: false, drag: { x: false, y: false } },
      series: [{}, ...series],
      plugins: [valueBox(words)],
      padding: isProfile ? [12, 24, 0, below.left] : [12, 14, 0, 0],
    },
    [x, ...given.values],
  );
  if (!host.boxes) {
    host.boxes = runBoxes(given.runs, (place, shown) => host.chart.setSeries(place + 1, { show: shown }));
    host.after(host.boxes);
  }
  all("input", host.boxes).forEach((tick, place) => tick.checked || chart.setSeries(place + 1, { show: false }));
}

/**
 * What units are worth by two runs: above the diagonal the second is better, or below it if `sign` is -1.
 * `picked(place)` on a click.
 */
function drawPairs(host, first, second, points, sign, picked) {
  const sorted = points.map((point, place) => ({ ...point, place })).sort((a, b) => a.a - b.a);
  const part = (is) => sorted.map((point) => (is(sign * (point.b - point.a)) ? point.b : null));
  const dots = (colour) => ({
    stroke: colour,
    fill: colour,
    paths: () => null,
    points: { show: true, size: 10, fill: colour, stroke: cssValue("--paper"), width: 1 },
  });
  const nearest = (chart) => {
    const { left, top } = chart.cursor;
    let best = null,
      least = 24 ** 2;
    sorted.forEach((point, place) => {
      const away = (chart.valToPos(point.a, "x") - left) ** 2 + (chart.valToPos(point.b, "y") - top) ** 2;
      if (away < least) [best, least] = [place, away];
    });
    return best;
  };
  const worths = sorted.flatMap(({ a, b }) => [a, b]);
  const least = Math.min(...worths),
    most = Math.max(...worths),
    margin = Math.max(0.02, 0.05 * (most - least));
  const span = { range: [Math.max(-0.03, least - margin), Math.min(1.03, most + margin)] };
  const diagonal = (chart) => {
    const at = (value, scale) => chart.valToPos(value, scale, true);
    chart.ctx.save();
    chart.ctx.strokeStyle = cssValue("--quiet");
    chart.ctx.setLineDash([4, 4]);
    chart.ctx.beginPath();
    chart.ctx.moveTo(at(span.range[0], "x"), at(span.range[0], "y"));
    chart.ctx.lineTo(at(span.range[1], "x"), at(span.range[1], "y"));
    chart.ctx.stroke();
    chart.ctx.restore();
  };
  const counts = new Map();
  sorted.forEach(({ a, b }) => counts.set(`${a} ${b}`, (counts.get(`${a} ${b}`) ?? 0) + 1));
  const crowds = (chart) => {
    const ratio = devicePixelRatio;
    chart.ctx.save();
    chart.ctx.fillStyle = cssValue("--quiet");
    chart.ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    for (const [place, count] of counts) {
      const [a, b] = place.split(" ").map(Number);
      const [x, y] = [chart.valToPos(a, "x", true), chart.valToPos(b, "y", true)];
      chart.ctx.textAlign = a > 0.5 ? "right" : "left";
      if (count > 1) chart.ctx.fillText(`×${count}`, x + (a > 0.5 ? -9 : 9) * ratio, y + (b > 0.5 ? 14 : -7) * ratio);
    }
    chart.ctx.restore();
  };
  let under = null;
  const box = make("div", { className: "value-box", hidden: true });
  const follow = (chart) => {
    under = nearest(chart);
    box.hidden = under === null || chart.cursor.left < 0;
    chart.over.style.cursor = under === null ? "default" : "pointer";
    if (box.hidden) return;
    const point = sorted[under];
    box.replaceChildren(
      make("b", {}, point.name),
      make("span", {}, dotOf(first), nameOf(first), make("em", {}, percent(point.a))),
      make("span", {}, dotOf(second), nameOf(second), make("em", {}, percent(point.b))),
    );
    const x = chart.valToPos(point.a, "x"),
      y = chart.valToPos(point.b, "y");
    box.style.transform = `translate(${x > chart.over.clientWidth / 2 ? x - box.offsetWidth - 12 : x + 12}px, ${Math.max(0, Math.min(y - 10, chart.over.clientHeight - box.offsetHeight))}px)`;
  };
  const chart = plot(
    host,
    {
      height: 380,
      scales: { x: { time: false, ...span }, y: span },
      axes: [
        axis(`${nameOf(first)}, %`, { values: inPercent, size: 34 }),
        axis(`${nameOf(second)}, %`, { values: inPercent, size: 44 }),
      ],
      cursor: { x: false, y: false, points: { show: false }, drag: { x: false, y: false } },
      series: [{}, dots(colourOf(first)), dots(colourOf(second)), dots(cssValue("--quiet"))],
      hooks: { drawClear: [diagonal], draw: [crowds], setCursor: [follow] },
      padding: [12, 14, 0, 0],
    },
    [sorted.map((point) => point.a), part((by) => by < 0), part((by) => by > 0), part((by) => by === 0)],
  );
  chart.over.append(box);
  chart.over.addEventListener("click", () => under !== null && picked(sorted[under].place));
}
