/* Puts the page together. What is in sight first is made first; the tables behind other tabs when there is time. */

const TABS = [
  { key: "saved", title: "Saved values", make: (panel) => (savedTable = new SavedTable(panel)) },
  { key: "memory", title: "Live memory", make: (panel) => new LiveTable(panel) },
  { key: "modules", title: "By module", make: (panel) => new ModuleTable(panel) },
  { key: "lines", title: "By line", make: (panel) => new LineTable(panel) },
  { key: "tradeoff", title: "Trade-off", make: (panel) => new TradeOff(panel) },
  { key: "changes", title: "Changes", make: (panel) => new Changes(panel), wanted: () => report.changes },
];

const made = new Set();

function makeTab(tab) {
  if (made.has(tab.key)) return;
  made.add(tab.key);
  tab.make(byId(`panel-${tab.key}`));
}

function makeTabs() {
  const shown = TABS.filter((tab) => !tab.wanted || tab.wanted());
  fill(
    byId("tabs"),
    shown.map((tab) =>
      h(
        "button",
        {
          type: "button",
          role: "tab",
          id: `tab-${tab.key}`,
          "aria-controls": `panel-${tab.key}`,
          onclick: () => showTab(tab.key),
        },
        tab.title,
      ),
    ),
  );
  fill(
    byId("panels"),
    shown.map((tab) =>
      h(
        "section",
        {
          class: "tabpanel",
          role: "tabpanel",
          id: `panel-${tab.key}`,
          "aria-labelledby": `tab-${tab.key}`,
          hidden: true,
        },
        h("h2", { class: "print-title" }, tab.title),
      ),
    ),
  );
  byId("tabs").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = shown.findIndex((tab) => tab.key === state.tab);
    const next = shown[(at + step + shown.length) % shown.length];
    showTab(next.key);
    byId(`tab-${next.key}`).focus();
    event.preventDefault();
  });
  const show = () => {
    for (const tab of shown) {
      const on = tab.key === state.tab;
      byId(`tab-${tab.key}`).setAttribute("aria-selected", String(on));
      byId(`tab-${tab.key}`).tabIndex = on ? 0 : -1;
      byId(`panel-${tab.key}`).hidden = !on;
      if (on) makeTab(tab);
    }
  };
  when("tab", show);
  show();
  return () => shown.forEach(makeTab);
}

function chooseTheme() {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  toggleTheme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => toggleTheme(dark.matches ? "dark" : "light"));
}

function makeRegionChoice() {
  if (regions.length < 2) return;
  byId("region-choice").hidden = false;
  const choice = byId("region");
  fill(
    choice,
    regions.map((region) =>
      h(
        "option",
        { value: String(region.index) },
        `${region.data.name} · ${region.data.has_backward ? bytesText(region.data.saved_bytes) : "forward only"}`,
      ),
    ),
  );
  choice.addEventListener("change", () => showRegion(Number(choice.value)));
  when("region", () => (choice.value = String(state.region)));
}

/** On paper everything shows, on white, and sharper than a screen. */
function preparePrinting(makeAll, graph, chart) {
  let before = null;
  const paint = () => {
    graph.paintNow();
    paintMemory(chart);
  };
  window.addEventListener("beforeprint", () => {
    makeAll();
    before = { theme: document.documentElement.dataset.theme, place: { ...graph.place } };
    sharpness = 3;
    toggleTheme("light");
    graph.fit(true);
    paint();
  });
  // The canvases have the size of the sheet by the time that it is laid out.
  window.matchMedia("print").addEventListener("change", ({ matches }) => {
    if (!matches || !before) return;
    graph.fit(true);
    paint();
  });
  window.addEventListener("afterprint", () => {
    if (!before) return;
    sharpness = 1;
    toggleTheme(before.theme);
    graph.place = before.place;
    before = null;
    paint();
  });
}

function main() {
  chooseTheme();
  showVerdict();
  makeRegionChoice();
  const makeAll = makeTabs();
  showGraphLegend();
  const graph = new GraphView();
  const chart = new MemoryChart();
  new Inspector();
  new Search();
  listenForKeys();
  preparePrinting(makeAll, graph, chart);
  readAddress();
  window.addEventListener("hashchange", readAddress);
  const texts = { bytesText, magnitudeText, percentText };
  window.aotcli = { graph, chart, report, regions, state, select, texts }; // for the console, and for tests
  document.documentElement.dataset.ready = "true";
}

main();
