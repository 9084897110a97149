/* The first screen: how much is saved, beside eager, what that costs, what was traced, and how to have it again. */

// Fills of the strip of what is saved: they differ in lightness from neighbour to neighbour.
const STRIP = [
  "#0e7a55",
  "#2f9e78",
  "#0b5f8a",
  "#3d8fc4",
  "#6a4c93",
  "#9573bd",
  "#a0522d",
  "#c8793f",
  "#566573",
  "#7f8c99",
];
const STRIP_REST = "#98a2ad";
const STRIP_MOST = 10;

function showVerdict() {
  const { verdict } = report;
  byId("model").textContent = verdict.model;
  byId("model").title = verdict.model;
  byId("strategy").textContent = verdict.strategy;
  fill(
    byId("verdict"),
    headline(verdict),
    h(
      "div",
      { id: "tiles" },
      verdict.tiles.map((tile) =>
        h(
          "div",
          { class: "panel tile" },
          h("div", { class: "label" }, tile.label),
          h("div", { class: "value num" }, tile.value),
          h("div", { class: "detail" }, tile.detail),
        ),
      ),
    ),
    madeOf(),
    notes(verdict),
    h(
      "dl",
      { id: "facts" },
      verdict.facts.map(([label, value]) => h("div", {}, h("dt", {}, label), h("dd", {}, value))),
    ),
    how(verdict),
  );
}

function headline(verdict) {
  const box = h("div", { class: "panel", id: "headline" });
  if (!verdict.has_backward) {
    box.append(
      h("div", { class: "label" }, "Saved for backward"),
      h("div", { class: "figure nothing" }, "Nothing"),
      h("div", { class: "muted" }, "No input or parameter needs a gradient: there is no backward."),
    );
    return box;
  }
  box.append(
    h("div", { class: "label" }, "Saved for backward"),
    h(
      "div",
      {},
      h("span", { class: "figure num" }, bytesText(verdict.saved_bytes)),
      h("span", { class: "beside" }, `in ${plural(verdict.saved_tensors, "tensor")}`),
    ),
  );
  if (verdict.eager_bytes === null) {
    box.append(h("div", { class: "muted" }, verdict.eager));
    return box;
  }
  const most = Math.max(verdict.saved_bytes, verdict.eager_bytes, 1);
  const track = (nbytes, fillColor) =>
    h("div", { class: "track" }, h("div", { style: { width: `${(100 * nbytes) / most}%`, background: fillColor } }));
  const change = verdict.eager_change;
  box.append(
    h(
      "div",
      { class: "against", title: verdict.eager },
      h("span", {}, "this plan"),
      track(verdict.saved_bytes, "var(--saved)"),
      h(
        "span",
        { class: `num ${change.startsWith("−") ? "good" : change.startsWith("+") ? "bad" : ""}` },
        change && !change.endsWith("same") ? change : change ? `${change} as eager` : "",
      ),
      h("span", {}, "eager"),
      track(verdict.eager_bytes, "var(--faint)"),
      h("span", { class: "num" }, bytesText(verdict.eager_bytes)),
    ),
  );
  return box;
}

/** A strip of what is saved, largest first; a piece selects its row. */
function madeOf() {
  const pieces = [];
  for (const region of regions) {
    const { rows } = region.data.saved;
    rows.nbytes.forEach((nbytes, row) => {
      if (rows.category[row] === "activation" && nbytes > 0) pieces.push({ region, row, nbytes });
    });
  }
  if (pieces.length < 2) return null;
  pieces.sort((a, b) => b.nbytes - a.nbytes);
  const total = pieces.reduce((sum, piece) => sum + piece.nbytes, 0);
  const shown = pieces.slice(0, STRIP_MOST);
  const rest = total - shown.reduce((sum, piece) => sum + piece.nbytes, 0);
  const buttons = shown.map(({ region, row, nbytes }, place) => {
    const name = `${shared(region.data.saved.rows.module[row])} · ${shared(region.data.saved.rows.what[row])}`;
    const share = percentText(nbytes, total);
    return h(
      "button",
      {
        type: "button",
        style: { flex: `${nbytes} 1 0`, background: STRIP[place] },
        title: `${name}\n${bytesText(nbytes)}, ${share} %\n${shared(region.data.saved.rows.reason[row])}`,
        "aria-label": `${name}, ${bytesText(nbytes)}`,
        onclick: () => {
          showRegion(region.index);
          showTab("saved");
          savedTable.pickRow(row);
        },
      },
      nbytes / total > 0.06 ? name : "",
    );
  });
  if (rest > 0) {
    buttons.push(
      h(
        "button",
        {
          type: "button",
          style: { flex: `${rest} 1 0`, background: STRIP_REST },
          title: `${pieces.length - shown.length} more rows\n${bytesText(rest)}, ${percentText(rest, total)} %`,
          "aria-label": `${pieces.length - shown.length} more rows, ${bytesText(rest)}`,
          onclick: () => showTab("saved"),
        },
        "",
      ),
    );
  }
  return h(
    "div",
    { class: "panel", id: "made-of" },
    h("h3", {}, "What the saved bytes are"),
    h("div", { class: "strip" }, buttons),
  );
}

function notes(verdict) {
  const texts = [...verdict.notes, ...verdict.breaks.map((text) => `Graph break: ${text}`)];
  if (!texts.length) return null;
  return h(
    "div",
    { class: "notes" },
    texts.map((text) => h("p", { class: "note" }, text)),
  );
}

function how(verdict) {
  const blocks = [
    ["Make this report again", verdict.command],
    ["Train by this plan", verdict.usage.join("\n")],
  ];
  const shown = blocks.filter(([, text]) => text);
  if (!shown.length) return null;
  return h(
    "details",
    { class: "how" },
    h("summary", {}, "The command, and how to train by this plan"),
    shown.map(([title, text]) =>
      h(
        "pre",
        { title },
        text,
        copyButton(() => text),
      ),
    ),
  );
}
