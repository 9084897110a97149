/* Search over names, ops, modules, shapes and lines; words in any order; `is:saved` and the like narrow it. */

const HITS_SHOWN = 60;
const KIND_TESTS = {
  saved: (region, node) => region.flags(node) & SAVED,
  recomputed: (region, node) => region.isRecomputed(node),
  forward: (region, node) => region.flags(node) & FORWARD,
  backward: (region, node) => region.flags(node) & BACKWARD,
  view: (region, node) => region.flags(node) & VIEW,
  random: (region, node) => region.flags(node) & RANDOM,
  gradient: (region, node) => region.flags(node) & GRADIENT,
  result: (region, node) => region.flags(node) & RESULT,
};
const FIELD_TESTS = {
  op: (region, node) => `${region.label(node)} ${shared(region.nodes.target[node])}`,
  module: (region, node) => region.module(node),
  shape: (region, node) => shared(region.nodes.shape[node]),
  line: (region, node) => shared(region.nodes.line[node]),
  name: (region, node) => region.name(node),
};

/** Nodes that a query finds, best first: those whose name it is, then those whose name starts so, then by bytes. */
function findNodes(region, query) {
  const terms = termsOf(query);
  if (!terms.length) return [];
  const hay = region.haystacks();
  const tests = terms.map((term) => {
    const [, field, value] = term.match(/^([a-z]+):(.+)$/) || [];
    if (field === "is" && KIND_TESTS[value]) return (node) => KIND_TESTS[value](region, node);
    if (FIELD_TESTS[field]) return (node) => FIELD_TESTS[field](region, node).toLowerCase().includes(value);
    return (node) => hay[node].includes(term);
  });
  const found = [];
  for (let node = 0; node < region.size; node += 1) if (tests.every((test) => test(node))) found.push(node);
  const whole = terms.join(" ");
  const rank = (node) => {
    const name = region.name(node).toLowerCase();
    return name === whole ? 0 : name.startsWith(whole) ? 1 : 2;
  };
  const ranks = new Map(found.map((node) => [node, rank(node)]));
  const { nbytes } = region.nodes;
  return found.sort((a, b) => ranks.get(a) - ranks.get(b) || nbytes[b] - nbytes[a] || a - b);
}

class Search {
  constructor() {
    this.input = byId("search");
    this.list = byId("search-results");
    this.hits = [];
    this.at = 0;
    this.input.addEventListener("input", () => this.look());
    this.input.addEventListener("focus", () => this.look());
    this.input.addEventListener("keydown", (event) => this.pressed(event));
    this.input.addEventListener("blur", () => setTimeout(() => this.close(), 120));
    this.list.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps its focus
    this.list.addEventListener("click", (event) => {
      const hit = event.target.closest(".hit");
      if (hit) this.take(Number(hit.dataset.place));
      else if (event.target.closest("button")) this.markAll();
    });
    when("region", () => this.close());
  }

  look() {
    const query = this.input.value.trim();
    if (!query) {
      this.close();
      return;
    }
    const region = currentRegion();
    this.hits = findNodes(region, query);
    this.at = 0;
    const shown = this.hits.slice(0, HITS_SHOWN);
    const foot = this.hits.length
      ? [
          `${plural(this.hits.length, "node")} · `,
          h("button", { class: "link", type: "button" }, "mark all in the graph"),
          " · narrow with is:saved, is:recomputed, op:, module:, shape:, line:",
        ]
      : [`No node matches “${query}”.`];
    fill(
      this.list,
      shown.map((node, place) => this.hit(region, node, place)),
      h("div", { class: "hits-foot" }, foot),
    );
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    this.point(0);
  }

  hit(region, node, place) {
    const where = [region.name(node), region.module(node), shared(region.nodes.line[node])].filter(Boolean).join(" · ");
    return h(
      "div",
      { class: "hit", role: "option", id: `hit-${place}`, "data-place": place },
      h("span", { class: "name" }, region.label(node), " ", badgesOf(region, node).slice(0, 2)),
      h("span", { class: "mono muted" }, shared(region.nodes.shape[node])),
      h("span", { class: "where" }, where),
    );
  }

  point(place) {
    const options = [...this.list.querySelectorAll(".hit")];
    if (!options.length) return;
    this.at = (place + options.length) % options.length;
    options.forEach((option, index) => option.setAttribute("aria-selected", String(index === this.at)));
    options[this.at].scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", `hit-${this.at}`);
  }

  take(place) {
    const node = this.hits[place];
    if (node === undefined) return;
    this.close();
    this.input.blur();
    select(node, "search");
    byId("graph-canvas").focus({ preventScroll: true });
  }

  markAll() {
    const { hits } = this;
    this.close();
    mark([...hits], "search");
  }

  pressed(event) {
    if (event.key === "ArrowDown") this.point(this.at + 1);
    else if (event.key === "ArrowUp") this.point(this.at - 1);
    else if (event.key === "Enter" && event.shiftKey) this.markAll();
    else if (event.key === "Enter") this.take(this.at);
    else if (event.key === "Escape") {
      this.input.value = "";
      this.close();
      this.input.blur();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }
}
