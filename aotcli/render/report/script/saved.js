/* The table of saved values: folded by repeated layer or one by one, sorted, filtered, linked to the graph. */

const SAVED_COLUMNS = [
  { key: "nbytes", title: "Bytes", right: true, down: true },
  { key: "share", title: "%", right: true, down: true },
  { key: "count", title: "n", right: true, down: true },
  { key: "module", title: "Module" },
  { key: "what", title: "What" },
  { key: "shape", title: "Shape" },
  { key: "reason", title: "Why saved" },
  { key: "line", title: "Line" },
];
const ROWS_AT_ONCE = 200;
const natural = new Intl.Collator("en", { numeric: true });

class SavedTable {
  constructor(panel) {
    this.folded = true;
    this.category = "activation";
    this.filter = "";
    this.sort = { key: "nbytes", down: true };
    this.open = new Set(); // folded rows whose members are listed
    this.limit = ROWS_AT_ONCE;
    this.body = h("tbody");
    this.scroll = h("div", { class: "scroll", tabIndex: -1 });
    this.count = h("span", { class: "count", role: "status" });
    this.build(panel);
    when("region", () => this.reset());
    when("select", ({ from }) => this.follow(from));
  }

  build(panel) {
    const search = h("input", {
      type: "search",
      placeholder: "Filter: module, op, shape, reason, line",
      "aria-label": "Filter saved values",
      oninput: () => {
        this.filter = search.value;
        this.limit = ROWS_AT_ONCE;
        this.show();
      },
    });
    this.choice = h("select", {
      "aria-label": "Which saved values",
      onchange: () => {
        this.category = this.choice.value;
        this.show();
      },
    });
    const fold = h(
      "button",
      {
        type: "button",
        "aria-pressed": "true",
        title: "Equal layers in one row",
        onclick: () => {
          this.folded = !this.folded;
          fold.setAttribute("aria-pressed", String(this.folded));
          this.show();
        },
      },
      "Fold layers",
    );
    this.heads = SAVED_COLUMNS.map((column) =>
      h(
        "th",
        { class: column.right ? "right" : "", scope: "col" },
        h("button", { type: "button", onclick: () => this.sortBy(column) }, column.title),
      ),
    );
    this.scroll.append(h("table", {}, h("thead", {}, h("tr", {}, this.heads)), this.body));
    this.scroll.addEventListener("scroll", () => {
      const { scrollTop, clientHeight, scrollHeight } = this.scroll;
      if (this.limit < this.rows.length && scrollTop + clientHeight > scrollHeight - 300) this.more();
    });
    this.body.addEventListener("click", (event) => this.clicked(event));
    this.body.addEventListener("keydown", (event) => this.pressed(event));
    panel.append(h("div", { class: "controls" }, search, this.choice, fold, this.count), this.scroll);
    this.reset();
  }

  reset() {
    const { values } = currentRegion().data.saved;
    const categories = [...new Set(values.category)];
    const wanted = [
      ["activation", "activations"],
      ["kept", "in memory anyway"],
      ["all", "all"],
    ];
    fill(
      this.choice,
      wanted.map(([value, label]) => h("option", { value }, label)),
    );
    this.choice.hidden = categories.length < 2 && categories[0] === "activation";
    if (!categories.includes("activation") && categories.length) this.category = "kept";
    this.choice.value = this.category;
    this.open.clear();
    this.limit = ROWS_AT_ONCE;
    this.show();
  }

  sortBy(column) {
    const again = this.sort.key === column.key;
    this.sort = { key: column.key, down: again ? !this.sort.down : Boolean(column.down) };
    this.show();
  }

  /** Rows as objects: folded ones list their values. */
  collect() {
    const { values, rows } = currentRegion().data.saved;
    if (!this.folded) {
      return values.node.map((node, place) => ({
        nbytes: values.nbytes[place],
        count: 1,
        category: values.category[place],
        module: shared(values.module[place]),
        what: shared(values.what[place]),
        shape: shared(values.shape[place]),
        rule: shared(values.rule[place]),
        reason: shared(values.reason[place]),
        line: shared(values.line[place]),
        lines: 1,
        values: [place],
        row: -1,
      }));
    }
    const starts = startsOf(rows.value_counts);
    return rows.nbytes.map((nbytes, row) => ({
      nbytes,
      count: rows.count[row],
      category: rows.category[row],
      module: shared(rows.module[row]),
      what: shared(rows.what[row]),
      shape: shared(rows.shape[row]),
      rule: shared(rows.rule[row]),
      reason: shared(rows.reason[row]),
      line: shared(rows.line[row]),
      lines: rows.lines[row],
      values: rows.values.slice(starts[row], starts[row + 1]),
      row,
    }));
  }

  wanted(row) {
    if (this.category === "activation" && row.category !== "activation") return false;
    if (this.category === "kept" && row.category === "activation") return false;
    if (!this.filter.trim()) return true;
    const region = currentRegion();
    const names = row.values.slice(0, 400).map((place) => region.name(region.data.saved.values.node[place]));
    const hay = [row.module, row.what, row.shape, row.reason, row.rule, row.line, row.category, ...names].join("\n");
    return termsOf(this.filter).every((term) => hay.toLowerCase().includes(term));
  }

  show() {
    const found = this.collect().filter((row) => this.wanted(row));
    const { key, down } = this.sort;
    const text = key === "module" || key === "what" || key === "shape" || key === "reason" || key === "line";
    const field = key === "share" ? "nbytes" : key;
    found.sort((a, b) => (text ? natural.compare(a[field], b[field]) : a[field] - b[field]) * (down ? -1 : 1));
    this.rows = found;
    this.total = currentRegion().data.saved_bytes;
    this.usual = usualDtype(found);
    this.heads[5].firstElementChild.textContent = `Shape ${this.usual}`;
    SAVED_COLUMNS.forEach((column, place) => {
      if (column.key === key) this.heads[place].setAttribute("aria-sort", down ? "descending" : "ascending");
      else this.heads[place].removeAttribute("aria-sort");
    });
    this.draw();
  }

  draw() {
    const shown = this.rows.slice(0, this.limit);
    const elements = [];
    for (const row of shown) {
      elements.push(this.element(row));
      if (this.open.has(row.row) && row.row >= 0) elements.push(...this.members(row));
    }
    if (this.rows.length > shown.length) {
      elements.push(
        h(
          "tr",
          { class: "more" },
          h("td", { colSpan: SAVED_COLUMNS.length }, `and ${plural(this.rows.length - shown.length, "more row")}`),
        ),
      );
    }
    if (!this.rows.length) {
      elements.push(h("tr", { class: "more" }, h("td", { colSpan: SAVED_COLUMNS.length }, this.nothing())));
    }
    fill(this.body, elements);
    const nbytes = this.rows.reduce((sum, row) => sum + row.nbytes, 0);
    const tensors = this.rows.reduce((sum, row) => sum + row.count, 0);
    this.count.textContent = `${plural(this.rows.length, "row")} · ${countText(tensors)} values · ${bytesText(nbytes)}`;
    this.shade();
  }

  nothing() {
    if (this.filter.trim()) return `No saved value matches “${this.filter.trim()}”.`;
    return currentRegion().data.has_backward
      ? "Nothing is saved here."
      : "This region has no backward: nothing is saved.";
  }

  more() {
    this.limit += ROWS_AT_ONCE * 2;
    this.draw();
  }

  element(row, member = false) {
    const share = this.total && row.category === "activation" ? row.nbytes / this.total : 0;
    const canOpen = !member && row.row >= 0 && row.values.length > 1;
    const toggle = canOpen
      ? h(
          "button",
          {
            class: "fold",
            type: "button",
            "aria-expanded": String(this.open.has(row.row)),
            "aria-label": "List its values",
          },
          this.open.has(row.row) ? "▾" : "▸",
        )
      : null;
    const element = h(
      "tr",
      { class: member ? "member" : "", tabIndex: 0 },
      h(
        "td",
        { class: "right share" },
        bytesText(row.nbytes),
        share > 0.004 ? h("i", { style: { width: `${100 * share}%` } }) : null,
      ),
      h("td", { class: "right" }, row.category === "activation" ? percentText(row.nbytes, this.total) : "–"),
      h("td", { class: "right" }, toggle, countText(row.count)),
      h("td", { class: "clip", title: row.module }, row.module),
      h("td", { class: "clip", title: row.what }, row.what),
      h("td", { class: "shape", title: row.shape }, row.shape.replace(`${this.usual} `, "")),
      h(
        "td",
        { class: "clip", title: `${row.reason} (rule: ${row.rule})` },
        row.category === "activation" ? row.reason : `${row.category}, ${row.reason}`,
      ),
      h(
        "td",
        { class: "line", title: row.line },
        h("bdi", {}, row.line.split("/").at(-1) + (row.lines > 1 ? ` +${row.lines - 1}` : "")),
      ),
    );
    element.savedRow = row;
    return element;
  }

  /** The single values behind a folded row. */
  members(row) {
    const { values } = currentRegion().data.saved;
    const region = currentRegion();
    return row.values.map((place) =>
      this.element(
        {
          nbytes: values.nbytes[place],
          count: 1,
          category: values.category[place],
          module: shared(values.module[place]),
          what: region.name(values.node[place]),
          shape: shared(values.shape[place]),
          rule: shared(values.rule[place]),
          reason: shared(values.reason[place]),
          line: shared(values.line[place]),
          lines: 1,
          values: [place],
          row: -1,
        },
        true,
      ),
    );
  }

  clicked(event) {
    const element = event.target.closest("tr");
    if (!element) return;
    if (element.classList.contains("more")) {
      if (this.limit < this.rows.length) this.more();
    } else if (event.target.closest(".fold")) this.toggle(element.savedRow);
    else this.pick(element.savedRow);
  }

  pressed(event) {
    const element = event.target.closest("tr");
    if (!element || event.target !== element) return;
    const next = { ArrowDown: element.nextElementSibling, ArrowUp: element.previousElementSibling }[event.key];
    if (next) next.focus();
    else if (event.key === "Enter" || event.key === " ") this.pick(element.savedRow);
    else if (event.key === "ArrowRight" && !this.open.has(element.savedRow.row)) this.toggle(element.savedRow);
    else if (event.key === "ArrowLeft" && this.open.has(element.savedRow.row)) this.toggle(element.savedRow);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  toggle(row) {
    if (row.row < 0 || row.values.length < 2) return;
    if (this.open.has(row.row)) this.open.delete(row.row);
    else this.open.add(row.row);
    this.draw();
    const element = [...this.body.children].find((each) => each.savedRow && each.savedRow.row === row.row);
    if (element) element.focus({ preventScroll: true });
  }

  pick(row) {
    const { node } = currentRegion().data.saved.values;
    mark(
      row.values.map((place) => node[place]),
      "saved",
    );
  }

  /** Picks a folded row by its number. */
  pickRow(number) {
    const row = this.rows.find((each) => each.row === number);
    if (row) this.pick(row);
    this.shade(true);
  }

  /** Shows the row of what was selected elsewhere. */
  follow(from) {
    this.shade(from !== "saved");
  }

  shade(scroll = false) {
    const { values } = currentRegion().data.saved;
    const chosen = new Set(state.node >= 0 ? [state.node] : state.marked);
    let first = null;
    for (const element of this.body.children) {
      const row = element.savedRow;
      const hit = row && chosen.size > 0 && row.values.some((place) => chosen.has(values.node[place]));
      element.classList.toggle("picked", Boolean(hit));
      if (hit && !first) first = element;
    }
    if (scroll && first && !this.scroll.closest("[hidden]")) first.scrollIntoView({ block: "nearest" });
  }
}

let savedTable = null;

/** The dtype of most bytes, which then goes without saying. */
function usualDtype(rows) {
  const sums = new Map();
  for (const { shape, nbytes } of rows) {
    const dtype = shape.split(" ", 1)[0];
    sums.set(dtype, (sums.get(dtype) ?? 0) + nbytes);
  }
  return [...sums].reduce((best, each) => (each[1] > best[1] ? each : best), ["", -1])[0];
}

/** The words of a search, in lower case; text in quotes is one word. */
function termsOf(query) {
  return (query.toLowerCase().match(/"[^"]*"|\S+/g) || []).map((term) => term.replaceAll('"', "")).filter(Boolean);
}
