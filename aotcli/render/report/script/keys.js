/* Keys that work everywhere, and the list of all keys. */

const KEYS = [
  ["/", "search"],
  ["Esc", "leave the search, or drop the selection"],
  ["1 … 6", "the tables"],
  ["[ ]", "the next larger or smaller saved value"],
  ["M", "the peak of memory"],
  ["T", "light or dark"],
  ["?", "these keys"],
  ["On the graph", ""],
  ["← ↑ → ↓", "move; with Shift, farther"],
  ["+ − 0", "zoom in, zoom out, fit"],
  ["Enter", "open or close the selected box"],
  ["Shift+E, Shift+C", "open all, close all"],
  ["L", "equal layers once, or each"],
  ["P, U, B", "to what it is computed from, who reads it, who reads it in the backward"],
  ["On the memory chart", ""],
  ["← →, Home, End", "one op earlier or later, the first, the last"],
];

function listenForKeys() {
  const dialog = byId("keys");
  fill(
    dialog,
    h("h2", {}, "Keys"),
    h(
      "dl",
      {},
      KEYS.flatMap(([key, what]) =>
        what
          ? [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)]
          : [h("dt", {}, h("strong", {}, key)), h("dd", {}, "")],
      ),
    ),
    h("form", { method: "dialog" }, h("button", { type: "submit" }, "Close")),
  );
  dialog.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault(); // the policy of the page lets no form be sent, not even to a dialog
    dialog.close();
  });
  byId("help").addEventListener("click", () => dialog.showModal());
  byId("theme").addEventListener("click", () => toggleTheme());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const tabs = [...document.querySelectorAll('#tabs [role="tab"]')];
    const actions = {
      "/": () => byId("search").focus(),
      "?": () => dialog.showModal(),
      Escape: () => select(-1),
      t: () => toggleTheme(),
      m: () => {
        showStep(-1);
        const { memory } = currentRegion().data;
        if (memory.peak_at >= 0) select(memory.steps[memory.peak_at], "keys");
        showTab("memory");
      },
      "]": () => nextSaved(1),
      "[": () => nextSaved(-1),
    };
    const number = Number(event.key);
    if (number >= 1 && tabs[number - 1]) tabs[number - 1].click();
    else if (event.key in actions) actions[event.key]();
    else return;
    event.preventDefault();
  });
}

/** Selects the next saved value by size. */
function nextSaved(step) {
  const { values } = currentRegion().data.saved;
  const order = values.node
    .map((_, place) => place)
    .filter((place) => values.category[place] === "activation")
    .sort((a, b) => values.nbytes[b] - values.nbytes[a] || a - b);
  if (!order.length) {
    say("Nothing is saved here.");
    return;
  }
  const at = order.findIndex((place) => values.node[place] === state.node);
  const next = at < 0 ? 0 : (at + step + order.length) % order.length;
  select(values.node[order[next]], "keys");
}

function toggleTheme(wanted) {
  const root = document.documentElement;
  root.dataset.theme = wanted ?? (root.dataset.theme === "dark" ? "light" : "dark");
  cssColors.clear();
  byId("theme").textContent = root.dataset.theme === "dark" ? "☀" : "☾";
  tell("theme");
}
