// Precision over recall and ROC of every run, task by task, with an operating point that the reader moves.

const GRID = 240;
const share = (parts) => parts.map((part) => (part === null ? null : part / 10000));

/** The value of a curve at x, between its points; null beyond its ends. */
function valueAt(xs, ys, x) {
  if (!xs.length || x < xs[0] - 1e-9 || x > xs[xs.length - 1] + 1e-9) return null;
  let low = 0,
    high = xs.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (xs[middle] <= x + 1e-9) low = middle;
    else high = middle - 1;
  }
  if (low === xs.length - 1 || xs[low + 1] === xs[low]) return ys[low];
  return ys[low] + ((ys[low + 1] - ys[low]) * (x - xs[low])) / (xs[low + 1] - xs[low]);
}

/** A curve as shares, once. */
function unpacked(curve) {
  return {
    recall: share(curve.recall),
    precision: share(curve.precision),
    fpr: curve.fpr ? share(curve.fpr) : null,
    score: curve.score ?? null,
  };
}

/** Where a curve first reaches a recall. */
function operatingPoint(curve, recall) {
  const place = curve.recall.findIndex((value) => value >= recall - 1e-9);
  return place < 0
    ? null
    : { precision: curve.precision[place], fpr: curve.fpr?.[place] ?? null, score: curve.score?.[place] ?? null };
}

/** The recall to begin with: 80 %, or the tenth below what every run of the first task reaches. */
function reachedBy(given) {
  const ends = given.runs.map((own) => own.curves[given.names[0]]?.recall.at(-1) ?? 10000);
  return Math.max(0.1, Math.min(0.8, Math.floor(Math.min(...ends) / 1000) / 10));
}

class CurveChart {
  constructor(host, given) {
    this.given = given;
    this.runs = given.runs.map((own) => own.run);
    this.state = { name: given.names[0], kind: "pr", recall: reachedBy(given), hidden: new Set() };
    this.canvas = make("div", { className: "chart" });
    this.table = make("tbody");
    this.build(host);
    drawInView(this.canvas, () => this.draw());
  }

  build(host) {
    const task = chooser(
      "Task",
      this.given.names.map((name) => [name, name]),
      (name) => this.set({ name }),
    );
    const hasRoc = this.given.runs.some((own) => Object.values(own.curves).some((curve) => curve.fpr));
    const kinds = hasRoc
      ? [
          ["pr", "Precision–recall"],
          ["roc", "ROC"],
        ]
      : [];
    this.buttons = kinds.map(([kind, words]) =>
      make(
        "button",
        {
          type: "button",
          onclick: () => this.set({ kind }),
          "aria-pressed": String(kind === "pr"),
          "data-curve": kind,
        },
        words,
      ),
    );
    const start = Math.round(100 * this.state.recall);
    const out = make("output", {}, `${start} %`);
    const slider = make("input", {
      type: "range",
      min: 0,
      max: 100,
      step: 1,
      value: start,
      "aria-label": "operating point: recall in percent",
      oninput: () => {
        out.textContent = `${slider.value} %`;
        this.set({ recall: slider.value / 100 });
      },
    });
    const boxes = runBoxes(this.runs, (place, shown) => {
      this.state.hidden[shown ? "delete" : "add"](this.runs[place]);
      this.canvas.chart?.setSeries(place + 1, { show: shown });
      this.point();
    });
    const curves = this.given.runs.flatMap((own) => Object.values(own.curves));
    this.columns = [["precision", (at) => percent(at.precision)]];
    if (curves.some((curve) => curve.fpr)) this.columns.push(["false positives", (at) => percent(at.fpr)]);
    if (curves.some((curve) => curve.score))
      this.columns.push(["score at least", (at) => (at.score === null ? "–" : String(at.score))]);
    const heads = ["run", ...this.columns.map(([words]) => words)].map((words) => make("th", { scope: "col" }, words));
    const point = make(
      "div",
      { className: "point" },
      make("label", { className: "slider" }, "Operating point: recall ", out, slider),
      make("table", { className: "plain" }, make("thead", {}, make("tr", {}, heads)), this.table),
    );
    const tools = make(
      "div",
      { className: "tools" },
      this.given.names.length > 1 ? task.label : null,
      make("span", { className: "chips" }, this.buttons),
    );
    host.append(tools, make("div", { className: "split" }, make("div", {}, this.canvas, boxes), point));
    this.point();
  }

  set(change) {
    Object.assign(this.state, change);
    this.buttons.forEach((button) =>
      button.setAttribute("aria-pressed", String(button.dataset.curve === this.state.kind)),
    );
    if ("recall" in change) this.canvas.chart?.redraw(false);
    else if (this.canvas.chart) this.draw();
    this.point();
  }

  curves() {
    return this.given.runs.map((own) => (own.curves[this.state.name] ? unpacked(own.curves[this.state.name]) : null));
  }

  draw() {
    const isRoc = this.state.kind === "roc";
    const x = Array.from({ length: GRID + 1 }, (_, place) => (isRoc ? (place / GRID) ** 2 : place / GRID));
    const values = this.curves().map((curve) =>
      x.map((at) => {
        if (!curve || (isRoc && !curve.fpr)) return null;
        return isRoc ? valueAt(curve.fpr, curve.recall, at) : valueAt(curve.recall, curve.precision, at);
      }),
    );
    const words = (place) => ({
      title: `${isRoc ? "false positive rate" : "recall"} ${percent(x[place])}`,
      lines: this.runs
        .map((run, number) => [run, values[number][place]])
        .filter(([run, value]) => value !== null && !this.state.hidden.has(run))
        .sort((a, b) => b[1] - a[1])
        .map(([run, value]) => [run, percent(value)]),
    });
    const unit = { range: [0, 1.005] };
    plot(
      this.canvas,
      {
        height: 340,
        scales: { x: { time: false, range: [0, 1] }, y: unit },
        axes: [
          axis(isRoc ? "false positive rate, %" : "recall, %", { values: inPercent, size: 34 }),
          axis(isRoc ? "recall, %" : "precision, %", { values: inPercent, size: 44 }),
        ],
        cursor: { y: false, drag: { x: false, y: false } },
        series: [{}, ...this.runs.map((run) => lineOf(run, { show: !this.state.hidden.has(run) }))],
        plugins: [valueBox(words)],
        hooks: { draw: [(chart) => this.mark(chart, isRoc)] },
        padding: [10, 14, 0, 0],
      },
      [x, ...values],
    );
  }

  /** The line of the operating point. */
  mark(chart, isRoc) {
    const { ctx, bbox } = chart;
    const at = chart.valToPos(this.state.recall, isRoc ? "y" : "x", true);
    ctx.save();
    ctx.strokeStyle = cssValue("--accent");
    ctx.setLineDash([5, 4]);
    ctx.beginPath();
    if (isRoc) {
      ctx.moveTo(bbox.left, at);
      ctx.lineTo(bbox.left + bbox.width, at);
    } else {
      ctx.moveTo(at, bbox.top);
      ctx.lineTo(at, bbox.top + bbox.height);
    }
    ctx.stroke();
    ctx.restore();
  }

  /** What each run does at the operating point. */
  point() {
    const rows = this.curves()
      .map((curve, place) => ({ run: this.runs[place], at: curve && operatingPoint(curve, this.state.recall) }))
      .filter(({ run }) => !this.state.hidden.has(run));
    this.table.replaceChildren(
      ...rows.map(({ run, at }) =>
        make(
          "tr",
          {},
          make("th", { scope: "row" }, dotOf(run), nameOf(run)),
          ...this.columns.map(([, words], place) =>
            make("td", { className: "n" }, at ? words(at) : place ? "" : "not reached"),
          ),
        ),
      ),
    );
  }
}
