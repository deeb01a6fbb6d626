// Two runs on the same units: a chart with a point per unit, and the units on which they differ most.

const LISTED = 8;

/** The runs to begin with: those with the best means, in the order of the table. */
function bestTwo({ values, lower }) {
  const means = values.map((row, place) => {
    const known = row.filter((value) => value !== null);
    return { place, mean: known.reduce((sum, value) => sum + value, 0) / Math.max(1, known.length) };
  });
  const best = means.sort((a, b) => (lower ? a.mean - b.mean : b.mean - a.mean)).slice(0, 2);
  return best.map(({ place }) => place).sort((a, b) => a - b);
}

class Differences {
  constructor(host, given, section) {
    const [first, second] = bestTwo(given.figures[0]);
    Object.assign(this, { given, section, first, second, figure: 0 });
    this.canvas = make("div", { className: "chart square" });
    this.lists = make("div", { className: "lists" });
    this.words = make("p", { className: "quiet small" });
    this.build(host);
    drawInView(this.canvas, () => this.draw());
    this.list();
  }

  build(host) {
    const runs = this.given.runs.map((run, place) => [place, nameOf(run)]);
    const figures = this.given.figures.map((one, place) => [place, `${one.figure} · ${one.row}`]);
    const first = chooser("A", runs, (place) => this.set({ first: Number(place) }));
    const second = chooser("B", runs, (place) => this.set({ second: Number(place) }));
    const figure = chooser("Figure", figures, (place) => this.set({ figure: Number(place) }));
    first.select.value = this.first;
    second.select.value = this.second;
    const tools = make(
      "div",
      { className: "tools" },
      first.label,
      second.label,
      figures.length > 1 ? figure.label : null,
    );
    host.append(tools, make("div", { className: "split" }, make("div", {}, this.canvas, this.words), this.lists));
  }

  set(change) {
    Object.assign(this, change);
    if (this.canvas.chart) this.draw();
    this.list();
  }

  /** 1 where more is better, -1 where less is, such as of an error rate. */
  get sign() {
    return this.given.figures[this.figure].lower ? -1 : 1;
  }

  /** Units that both runs have a value of. */
  points() {
    const one = this.given.figures[this.figure];
    return one.names
      .map((name, place) => ({ name, a: one.values[this.first][place], b: one.values[this.second][place] }))
      .filter(({ a, b }) => a !== null && b !== null);
  }

  draw() {
    const points = this.points();
    const runs = [this.given.runs[this.first], this.given.runs[this.second]];
    drawPairs(this.canvas, ...runs, points, this.sign, (place) => this.open(points[place].name));
  }

  open(unit) {
    const cards = all(".card", this.section).filter((card) => card.dataset.unit === unit);
    const runs = [this.given.runs[this.first], this.given.runs[this.second]].map(String);
    const card = cards.find((one) => runs.includes(one.dataset.run)) ?? cards[0];
    if (card) openCase(card);
    return Boolean(card);
  }

  list() {
    const one = this.given.figures[this.figure],
      points = this.points();
    const kind = this.given.kind;
    const gained = points.map((point) => ({ point, gain: this.sign * (point.b - point.a) }));
    const better = {
      a: gained.filter(({ gain }) => gain < 0).map(({ point }) => point),
      b: gained.filter(({ gain }) => gain > 0).map(({ point }) => point),
    };
    const shown =
      one.total > one.names.length
        ? `Shown are ${one.names.length} of ${one.total.toLocaleString("en")}: the most different and an even sample of the others.`
        : `${points.length} in all, ${points.length - better.a.length - better.b.length} equal.`;
    this.words.textContent = `A point for each of the ${kind}; ${this.sign > 0 ? "above" : "below"} the line B is better. ${shown}`;
    this.lists.replaceChildren(this.table("a", better.a), this.table("b", better.b));
  }

  table(side, points) {
    const run = this.given.runs[side === "a" ? this.first : this.second];
    const sign = side === "a" ? this.sign : -this.sign;
    const most = [...points].sort((x, y) => sign * (y.a - y.b - (x.a - x.b))).slice(0, LISTED);
    const units = new Set(all(".card", this.section).map((card) => card.dataset.unit));
    const rows = most.map(({ name, a, b }) =>
      make(
        "tr",
        {},
        make(
          "td",
          {},
          units.has(name)
            ? make("button", { type: "button", className: "link", onclick: () => this.open(name) }, name)
            : name,
        ),
        ...[a, b].map((value) => make("td", { className: "n" }, percent(value))),
      ),
    );
    const title = make("h4", {}, dotOf(run), `better with ${nameOf(run)}: ${points.length}`);
    if (!rows.length) return make("div", {}, title);
    const head = ["", "A", "B"].map((words) => make("th", { scope: "col" }, words));
    return make(
      "div",
      {},
      title,
      make("table", { className: "plain" }, make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows)),
    );
  }
}

/** What a unit is worth by a run, by the first figure that has it, more being better; null if unknown. */
function worthOf(units, run, unit) {
  if (!units) return null;
  const place = units.runs.indexOf(run);
  for (const one of units.figures) {
    const at = one.names.indexOf(unit);
    if (place >= 0 && at >= 0 && one.values[place][at] !== null) return (one.lower ? -1 : 1) * one.values[place][at];
  }
  return null;
}
