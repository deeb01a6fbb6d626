// Tables: sorting by a click on a heading, choosing a view, differences to a baseline, copying.

const numberOf = (cell) => {
  const given = cell.dataset.v ?? cell.textContent.replace(/[,\s%]/g, "").replace("–", "");
  return given === "" || Number.isNaN(Number(given)) ? null : Number(given);
};

function sortable(table) {
  const heads = all("thead th", table);
  heads.forEach((head, place) => {
    const button = make("button", { type: "button", className: "sort", onclick: () => sortBy(table, heads, place) });
    button.append(...head.childNodes);
    head.append(button);
  });
}

/** Numbers from most to least first, words from A to Z first; a second click turns it round; undefined ones stay last. */
function sortBy(table, heads, place) {
  const rows = all("tbody tr", table);
  const cells = rows.map((row) => row.cells[place]);
  const values = cells.map((cell) => numberOf(cell));
  const areNumbers =
    values.some((value) => value !== null) &&
    values.every((value, at) => value !== null || ["–", ""].includes(cells[at].textContent));
  const was = heads[place].getAttribute("aria-sort");
  const falls = was ? was === "ascending" : areNumbers;
  const order = rows.map((row, at) => ({ row, value: values[at], words: cells[at].textContent }));
  order.sort((a, b) => {
    if (!areNumbers) return (falls ? -1 : 1) * a.words.localeCompare(b.words, "en", { numeric: true });
    if (a.value === null || b.value === null) return (a.value === null) - (b.value === null);
    return (falls ? -1 : 1) * (a.value - b.value);
  });
  heads.forEach((head) => head.removeAttribute("aria-sort"));
  heads[place].setAttribute("aria-sort", falls ? "descending" : "ascending");
  table.tBodies[0].append(...order.map(({ row }) => row));
}

/** Selectors that choose which of several views is shown. */
function choosing(host) {
  const selects = all("[data-choose]", host);
  const views = all(".view", host);
  const show = () => {
    const wanted = selects.map((select) => select.value).join(" / ");
    const found = views.find((view) => view.dataset.view === wanted);
    if (!found) return;
    views.forEach((view) => {
      view.hidden = view !== found;
    });
    all(".chart", found).forEach(drawNow);
  };
  selects.forEach((select) => select.addEventListener("change", show));
}

/** Differences to one run, in points, instead of figures. */
function baselines(host) {
  const select = host.querySelector("[data-baseline]");
  if (!select) return;
  select.addEventListener("change", () =>
    all("table.figures", host).forEach((table) => compareTo(table, select.value)),
  );
}

function compareTo(table, run) {
  const base = all("tbody tr", table).find((row) => row.dataset.run === run);
  const heads = all("thead th", table);
  for (const row of all("tbody tr", table)) {
    for (const cell of all("td[data-v]", row)) {
      const shown = cell.querySelector(".v");
      const beside = base && base !== row ? numberOf(base.cells[cell.cellIndex]) : null;
      all(".difference", cell).forEach((old) => old.remove());
      if (beside === null) continue;
      const by = 100 * (numberOf(cell) - beside);
      const text = `${by < 0 ? "−" : "+"}${Math.abs(by).toFixed(2)}`;
      const gain = "lower" in heads[cell.cellIndex].dataset ? -by : by;
      const kind = gain > 0 ? " better" : gain < 0 ? " worse" : "";
      shown.after(make("span", { className: `difference${kind}` }, text));
    }
  }
}

/** A table as text: what is shown, in the order in which it is sorted; CSV has the exact numbers as fractions. */
function tableText(table, kind) {
  const rows = [...table.rows].filter((row) => row.parentElement.tagName !== "CAPTION");
  const shown = (cell) =>
    cell.querySelector(".over")
      ? all(".over, .under", cell)
          .map((part) => part.textContent)
          .join(" ")
      : (cell.querySelector(".v") ?? cell).textContent.trim();
  const words = (cell) => {
    const difference = cell.querySelector(".difference"),
      interval = cell.querySelector("td > .interval");
    return (
      shown(cell) + (interval ? ` [${interval.textContent}]` : "") + (difference ? ` (${difference.textContent})` : "")
    );
  };
  if (kind === "csv")
    return (
      rows.map((row) => [...row.cells].map((cell) => csvCell(cell.dataset.v ?? shown(cell))).join(",")).join("\n") +
      "\n"
    );
  const strong = {
    markdown: { B: ["**", "**"], U: ["_", "_"] },
    latex: { B: ["\\textbf{", "}"], U: ["\\underline{", "}"] },
  }[kind];
  const escape = { markdown: markdownText, latex: latexText }[kind];
  const grid = rows.map((row) =>
    [...row.cells].map((cell) => {
      const [before, after] = strong[cell.querySelector(".v")?.tagName] ?? ["", ""];
      return before + escape(words(cell)) + after;
    }),
  );
  if (kind === "markdown") {
    const lines = grid.map((row) => `| ${row.join(" | ")} |`);
    return [lines[0], `|${"---|".repeat(grid[0].length)}`, ...lines.slice(1)].join("\n") + "\n";
  }
  const body = grid.map((row) => `${row.join(" & ")} \\\\`);
  return (
    [
      `\\begin{tabular}{l${"r".repeat(grid[0].length - 1)}}`,
      body[0],
      "\\hline",
      ...body.slice(1),
      "\\end{tabular}",
    ].join("\n") + "\n"
  );
}

const csvCell = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
const markdownText = (text) =>
  text.replace(/[|<>&*_\\`]/g, (mark) => ({ "<": "&lt;", ">": "&gt;", "&": "&amp;" })[mark] ?? `\\${mark}`);
const LATEX = {
  "\\": "\\textbackslash{}",
  "~": "\\textasciitilde{}",
  "^": "\\textasciicircum{}",
  "–": "--",
  "−": "$-$",
};
const latexText = (text) => text.replace(/[\\~^_%&#${}–−]/g, (mark) => LATEX[mark] ?? `\\${mark}`);

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make("textarea", { value: text, readOnly: true });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

function copying(button) {
  button.addEventListener("click", async () => {
    const host = button.closest(".views");
    const view = all(".view", host).find((one) => !one.hidden) ?? host;
    const words = button.textContent;
    await copyText(tableText(view.querySelector("table"), button.dataset.copy));
    button.textContent = "Copied";
    setTimeout(() => {
      button.textContent = words;
    }, 1200);
  });
}

/** A box that keeps the rows of a long table that have its words. */
function filtering(table) {
  const rows = all("tbody tr", table);
  if (rows.length < 9 || table.matches(".heat")) return;
  const box = make("input", {
    type: "search",
    placeholder: `Filter ${rows.length} rows`,
    "aria-label": "filter rows",
    oninput: () => {
      const wanted = box.value.toLowerCase();
      rows.forEach((row) => {
        row.hidden = !row.textContent.toLowerCase().includes(wanted);
      });
    },
  });
  table.parentElement.before(box);
}
