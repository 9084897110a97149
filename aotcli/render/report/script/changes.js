/* What changed against another step: the verdict, and lists whose rows lead to the nodes. */

class Changes {
  constructor(panel) {
    const { changes } = report;
    const better = changes.delta_bytes < 0;
    const scroll = h(
      "div",
      { class: "scroll", id: "changes" },
      h(
        "div",
        { class: "pad" },
        h(
          "div",
          { class: "change-figure" },
          h(
            "div",
            {},
            h(
              "b",
              { class: `num ${changes.delta_bytes ? (better ? "good" : "bad") : ""}` },
              changes.is_empty ? "No difference" : changes.delta,
            ),
          ),
          h("div", { class: "muted" }, h("div", {}, `from ${changes.left}`), h("div", {}, `to ${changes.right}`)),
        ),
        h("p", {}, changes.verdict),
        changes.notes.map((note) => h("p", { class: "muted" }, note)),
      ),
      changes.lists.filter((list) => list.rows.length).map((list) => this.list(list)),
    );
    panel.append(scroll);
    scroll.addEventListener("click", (event) => this.clicked(event, scroll));
    scroll.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.clicked(event, scroll);
    });
  }

  list({ title, heads, right, rows }) {
    const most = 400;
    const side = (place) => (place < right ? "right" : place === heads.length - 1 && place ? "line" : "");
    const head =
      heads.length > 1
        ? h(
            "thead",
            {},
            h(
              "tr",
              {},
              heads.map((text, place) =>
                h("th", { scope: "col", class: place < right ? "right" : "" }, h("span", {}, text)),
              ),
            ),
          )
        : null;
    const body = rows.slice(0, most).map((row) => {
      const element = h(
        "tr",
        { tabIndex: row.nodes.length ? 0 : -1 },
        row.cells.map((cell, place) =>
          h(
            "td",
            { class: side(place), title: cell },
            place === heads.length - 1 && place ? h("bdi", {}, cell.split("/").at(-1)) : cell,
          ),
        ),
      );
      element.nodes = row.nodes;
      return element;
    });
    if (rows.length > most) {
      body.push(
        h("tr", { class: "more" }, h("td", { colSpan: heads.length }, `and ${countText(rows.length - most)} more`)),
      );
    }
    return h("div", {}, h("h3", { class: "section-title" }, title), h("table", {}, head, h("tbody", {}, body)));
  }

  clicked(event, scroll) {
    const element = event.target.closest("tr");
    if (!element || !element.nodes) return;
    for (const row of scroll.querySelectorAll("tr.picked")) row.classList.remove("picked");
    element.classList.add("picked");
    if (!element.nodes.length) {
      say("This is only in the other step.");
      return;
    }
    const [[region]] = element.nodes;
    showRegion(region);
    mark(
      element.nodes.filter(([place]) => place === region).map(([, node]) => node),
      "changes",
    );
  }
}
