// Starts everything: images that are in the page once, tables, charts, the theme, the navigation, printing.

function sameImages() {
  for (const image of all("img[data-same]")) image.src = document.getElementById(image.dataset.same).src;
}

/** Dark or light: the system's choice until the reader makes another. */
function theme() {
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const shown = () => {
    button.setAttribute("aria-pressed", String(isDark()));
    drawAgain();
  };
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    shown();
  });
  system.addEventListener("change", shown);
  shown();
}

/** The part that is being read is marked in the navigation. */
function navigation() {
  const links = new Map(all(".menu > li > a").map((link) => [link.hash.slice(1), link]));
  const seen = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        links.forEach((link) => link.removeAttribute("aria-current"));
        const link = links.get(entry.target.id);
        link?.setAttribute("aria-current", "true");
        const list = link?.closest(".menu");
        if (list && list.scrollWidth > list.clientWidth) list.scrollLeft = link.offsetLeft - list.offsetLeft - 24;
      }
    },
    { rootMargin: "-20% 0px -70% 0px" },
  );
  all("main > section").forEach((section) => seen.observe(section));
}

/** All is drawn before a link moves the page: what is drawn on the way would move the place that it leads to. */
function landing() {
  addEventListener("click", (event) => {
    if (event.target.closest?.("a[href^='#']")) drawAll();
  });
  if (!location.hash) return;
  drawAll();
  document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
}

/** On paper nothing can be unfolded: figures, their meaning and what is comparable are open, the rest stays away. */
function printing() {
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = all("details:not([open])").filter(
      (fold) => !fold.matches(".published.none") && !fold.closest(".part[id$='-more']"),
    );
    opened.forEach((fold) => {
      fold.open = true;
    });
    drawAll();
  });
  addEventListener("afterprint", () =>
    opened.forEach((fold) => {
      fold.open = false;
    }),
  );
}

function start() {
  document.documentElement.classList.add("scripted");
  sameImages();
  all("table.sortable").forEach((table) => {
    sortable(table);
    filtering(table);
  });
  all(".views").forEach((host) => {
    choosing(host);
    baselines(host);
  });
  all("[data-copy]").forEach(copying);
  all("[data-chart]").forEach((host) =>
    drawInView(host, () => drawLines(host, DATA.charts[Number(host.dataset.chart)])),
  );
  for (const own of DATA.sections) {
    const section = document.getElementById(own.id);
    const [curves, pairs, cases] = [".curves", ".differences", ".gallery"].map((part) => section.querySelector(part));
    if (curves) new CurveChart(curves, own.curves);
    if (pairs) new Differences(pairs, own.units, section);
    if (cases) filteredGallery(cases, own.units);
  }
  watchViewer();
  theme();
  navigation();
  landing();
  printing();
}

start();
