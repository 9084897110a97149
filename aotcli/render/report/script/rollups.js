/* Saved bytes and recompute cost, added up by module and by source line. */

const SUM_COLUMNS = [
  { key: "saved_bytes", title: "Saved", text: bytesText },
  { key: "saved_tensors", title: "Tensors", text: countText },
  { key: "recomputed_ops", title: "Recomputed", text: (ops) => (ops ? plural(ops, "op") : "") },
  { key: "recompute_flops", title: "FLOPs again", text: (flops) => (flops ? magnitudeText(flops) : "") },
  { key: "moved_bytes", title: "Moved again", text: (nbytes) => (nbytes ? bytesText(nbytes) : "") },
];

/** Cells of a row's sums; the first has a bar for its share. */
function sumCells(table, row, total) {
  return SUM_COLUMNS.map((column, place) => {
    const value = table[column.key][row];
    const bar =
      place === 0 && total && value / total > 0.004 ? h("i", { style: { width: `${(100 * value) / total}%` } }) : null;
    return h("td", { class: place === 0 ? "right share" : "right" }, column.text(value), bar);
  });
}

function sumHeads(first) {
  const titles = {
    recompute_flops: "FLOPs of the ops that run again",
    moved_bytes: "What the ops that run again read and write, each run alone",
  };
  return h(
    "thead",
    {},
    h(
      "tr",
      {},
      h("th", { scope: "col" }, h("span", {}, first)),
      SUM_COLUMNS.map((column) =>
        h("th", { class: "right", scope: "col", title: titles[column.key] }, h("span", {}, column.title)),
      ),
    ),
  );
}

class ModuleTable {
  constructor(panel) {
    this.together = true;
    this.closed = new Set();
    this.body = h("tbody");
    const fold = h(
      "button",
      {
        type: "button",
        "aria-pressed": "true",
        title: "Equal layers in one row",
        onclick: () => {
          this.together = !this.together;
          this.closed.clear();
          fold.setAttribute("aria-pressed", String(this.together));
          this.show();
        },
      },
      "Fold layers",
    );
    const open = h("button", { type: "button", onclick: () => this.closeBelow(Infinity) }, "Open all");
    const close = h("button", { type: "button", onclick: () => this.closeBelow(1) }, "Close");
    panel.append(
      h("div", { class: "controls" }, fold, open, close),
      h("div", { class: "scroll" }, h("table", {}, sumHeads("Module"), this.body)),
    );
    this.body.addEventListener("click", (event) => this.clicked(event));
    this.body.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.clicked(event);
    });
    when("region", () => {
      this.closed.clear();
      this.show();
    });
    this.show();
  }

  get table() {
    return this.together ? currentRegion().data.layers : currentRegion().data.modules;
  }

  closeBelow(depth) {
    const { table } = this;
    this.closed = new Set(table.depth.flatMap((each, row) => (each >= depth && this.hasInner(row) ? [row] : [])));
    this.show();
  }

  hasInner(row) {
    return this.table.parent[row + 1] === row;
  }

  isShown(row) {
    for (let above = this.table.parent[row]; above >= 0; above = this.table.parent[above]) {
      if (this.closed.has(above)) return false;
    }
    return true;
  }

  show() {
    const { table } = this;
    const total = currentRegion().data.saved_bytes;
    const rows = table.path.map((_, row) => row).filter((row) => this.isShown(row));
    if (!rows.length) {
      fill(this.body, h("tr", { class: "more" }, h("td", { colSpan: SUM_COLUMNS.length + 1 }, "No module ran here.")));
      return;
    }
    fill(
      this.body,
      rows.map((row) => {
        const inner = this.hasInner(row);
        const toggle = h(
          "button",
          {
            class: "fold",
            type: "button",
            "aria-label": "Inner modules",
            "aria-expanded": String(!this.closed.has(row)),
            style: { visibility: inner ? "visible" : "hidden" },
          },
          this.closed.has(row) ? "▸" : "▾",
        );
        const label = shared(table.label[row]);
        const type = shared(table.module_type[row]);
        const element = h(
          "tr",
          { tabIndex: 0 },
          h(
            "td",
            { title: label },
            h(
              "span",
              { class: "tree-name", style: { paddingLeft: `${14 * table.depth[row]}px` } },
              toggle,
              h("span", {}, label),
              table.count[row] > 1 ? h("b", { class: "muted" }, `×${table.count[row]}`) : null,
              type ? h("span", { class: "muted" }, type) : null,
            ),
          ),
          sumCells(table, row, total),
        );
        element.row = row;
        return element;
      }),
    );
  }

  clicked(event) {
    const element = event.target.closest("tr");
    if (!element || element.row === undefined) return;
    const { row } = element;
    if (event.target.closest(".fold")) {
      if (this.closed.has(row)) this.closed.delete(row);
      else this.closed.add(row);
      this.show();
      return;
    }
    for (const each of this.body.children) each.classList.toggle("picked", each === element);
    const pattern = modulePattern(shared(this.table.path[row]), this.together);
    const region = currentRegion();
    mark(
      weightyNodes(region, (node) => region.nodes.module[node] >= 0 && pattern(region.module(node))),
      "modules",
    );
  }
}

/** Whether a module path is one, or within it; `*` stands for a number where layers are together. */
function modulePattern(path, together) {
  if (path === "") return () => true;
  const parts = path.split(".");
  return (module) => {
    const given = module.split(".");
    return (
      given.length >= parts.length &&
      parts.every((part, place) => part === given[place] || (together && part === "*" && /^\d+$/.test(given[place])))
    );
  };
}

/** Saved and recomputed nodes that `wanted` accepts. */
function weightyNodes(region, wanted) {
  const found = [];
  for (let node = 0; node < region.size; node += 1) {
    if ((region.flags(node) & SAVED || (region.isRecomputed(node) && !(region.flags(node) & VIEW))) && wanted(node)) {
      found.push(node);
    }
  }
  return found;
}

class LineTable {
  constructor(panel) {
    this.body = h("tbody");
    this.note = h(
      "p",
      { class: "pad muted" },
      "The text of the lines is left out; a report made with --with-source shows it.",
    );
    panel.append(h("div", { class: "scroll" }, h("table", {}, sumHeads("Line"), this.body), this.note));
    this.body.addEventListener("click", (event) => this.clicked(event));
    this.body.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.clicked(event);
    });
    when("region", () => this.show());
    this.show();
  }

  show() {
    const { lines, saved_bytes: total } = currentRegion().data;
    this.note.hidden = !lines.line.length || lines.code.some((code) => code >= 0);
    if (!lines.line.length) {
      fill(
        this.body,
        h(
          "tr",
          { class: "more" },
          h("td", { colSpan: SUM_COLUMNS.length + 1 }, "Nothing is saved or recomputed here."),
        ),
      );
      return;
    }
    fill(
      this.body,
      lines.line.map((line, row) => {
        const element = h(
          "tr",
          { tabIndex: 0 },
          h(
            "td",
            {},
            h("div", { class: "mono" }, shared(line) || "no line known"),
            lines.code[row] >= 0 ? h("div", { class: "code" }, shared(lines.code[row])) : null,
          ),
          sumCells(lines, row, total),
        );
        element.line = line;
        return element;
      }),
    );
  }

  clicked(event) {
    const element = event.target.closest("tr");
    if (!element || element.line === undefined) return;
    for (const each of this.body.children) each.classList.toggle("picked", each === element);
    const region = currentRegion();
    mark(
      weightyNodes(region, (node) => region.nodes.line[node] === element.line),
      "lines",
    );
  }
}
