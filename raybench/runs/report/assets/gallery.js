// The gallery: cards that filters keep, and one case large, with arrows and Escape.

const viewer = document.getElementById("viewer");
const FIRST_CASES = 6;
let current = null;

function openCase(card) {
  current = card;
  const opener = card.querySelector(".open");
  viewer.querySelector(".stage").replaceChildren(
    ...[...opener.children].map((panel) => {
      const copy = panel.cloneNode(true);
      all("img", copy).forEach((image) => image.removeAttribute("id"));
      return copy;
    }),
  );
  viewer.querySelector(".stage").classList.toggle("alone", opener.children.length === 1);
  viewer
    .querySelector(".words")
    .replaceChildren(...[...card.querySelector("p").childNodes].map((node) => node.cloneNode(true)));
  if (!viewer.open) viewer.showModal();
}

function step(by) {
  const cards = all(".card", current.closest(".cards")).filter((card) => !card.hidden || card === current);
  openCase(cards[(cards.indexOf(current) + by + cards.length) % cards.length]);
}

function watchViewer() {
  viewer.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by) {
      event.preventDefault();
      step(by);
    }
  });
  viewer.addEventListener("click", (event) => {
    const button = event.target.closest("[data-step]");
    if (button) Number(button.dataset.step) ? step(Number(button.dataset.step)) : viewer.close();
    else if (event.target === viewer) viewer.close();
  });
  viewer.addEventListener("close", () => current?.querySelector(".open").focus());
}

function filteredGallery(host, units) {
  const cards = all(".card", host);
  const chips = all("[data-kind]", host.querySelector(".tools"));
  const [whose, better] = ["[data-whose]", "[data-better]"].map((selector) => host.querySelector(selector));
  const count = host.querySelector(".count");
  const more = host.querySelector(".all-cases");
  let kind = "",
    most = FIRST_CASES;
  const wentBetter = (card) => {
    if (!better?.value) return true;
    if (card.dataset.run === better.value || !card.dataset.unit) return false;
    const [own, other] = [card.dataset.run, better.value].map((run) => worthOf(units, Number(run), card.dataset.unit));
    if (own !== null && other !== null) return other > own;
    return !cards.some((one) => one.dataset.run === better.value && one.dataset.unit === card.dataset.unit);
  };
  const show = () => {
    const fitting = cards.filter(
      (card) =>
        (!kind || card.dataset.kind === kind) &&
        (!whose?.value || card.dataset.run === whose.value) &&
        wentBetter(card),
    );
    cards.forEach((card) => {
      card.hidden = true;
    });
    fitting.slice(0, most).forEach((card) => {
      card.hidden = false;
    });
    more.hidden = fitting.length <= most;
    more.textContent = `Show all ${fitting.length}`;
    count.textContent =
      fitting.length === cards.length ? `${cards.length} cases` : `${fitting.length} of ${cards.length} cases`;
    chips.forEach((chip) => chip.setAttribute("aria-pressed", String(chip.dataset.kind === kind)));
  };
  more.addEventListener("click", () => {
    most = Infinity;
    show();
  });
  chips.forEach((chip) =>
    chip.addEventListener("click", () => {
      kind = chip.dataset.kind;
      show();
    }),
  );
  [whose, better].forEach((select) => select?.addEventListener("change", show));
  cards.forEach((card) => card.querySelector(".open").addEventListener("click", () => openCase(card)));
  arrowsBetween(cards);
  show();
}

/** Arrow keys walk from card to card. */
function arrowsBetween(cards) {
  cards.forEach((card) =>
    card.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      const shown = cards.filter((one) => !one.hidden);
      shown[(shown.indexOf(card) + by + shown.length) % shown.length].querySelector(".open").focus();
    }),
  );
}
