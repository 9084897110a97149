/* What is known about the selected node, and the nodes around it. */

const NODES_SHOWN = 14;

class Inspector {
  constructor() {
    this.panel = byId("inspector");
    when("select", () => this.show());
    when("region", () => this.show());
  }

  show() {
    this.panel.hidden = state.node < 0 && !state.marked.length;
    if (state.node >= 0) this.showNode(state.node);
    else if (state.marked.length) this.showSeveral(state.marked);
  }

  close() {
    return h(
      "button",
      { class: "close", type: "button", title: "Close (Esc)", "aria-label": "Close", onclick: () => select(-1) },
      "×",
    );
  }

  showSeveral(nodes) {
    const region = currentRegion();
    const { values } = region.data.saved;
    const places = nodes.map((node) => region.savedByNode.get(node)).filter((place) => place !== undefined);
    const nbytes = places.reduce((sum, place) => sum + values.nbytes[place], 0);
    const alike = (texts) => {
      const found = [...new Set(texts)].filter(Boolean);
      return found.slice(0, 3).join(", ") + (found.length > 3 ? ` and ${found.length - 3} more` : "");
    };
    const whole = places.length === nodes.length;
    const modules = whole
      ? places.map((place) => shared(values.module[place]))
      : nodes.map((node) => region.module(node));
    const rows = [
      [
        "what",
        alike(whole ? places.map((place) => shared(values.what[place])) : nodes.map((node) => region.label(node))),
      ],
      ["value", alike(nodes.map((node) => shared(region.nodes.shape[node])))],
      ["module", alike(modules.map((module) => module.replace(/(^|\.)\d+(?=\.|$)/g, "$1*")))],
      ["line", alike(nodes.map((node) => shared(region.nodes.line[node])))],
      ["saved", alike(places.map((place) => shared(values.reason[place])))],
    ];
    fill(
      this.panel,
      h(
        "div",
        { class: "head" },
        h("strong", {}, plural(nodes.length, "node")),
        places.length ? h("span", { class: "badge saved" }, `${bytesText(nbytes)} saved`) : null,
        this.close(),
      ),
      h("div", { class: "body" }, this.facts([...rows, ["nodes", this.nodes(nodes)]])),
    );
  }

  /** Rows of a label and a text or element; those with nothing to say are left out. */
  facts(rows) {
    const told = rows.filter(([, value]) => value && (typeof value === "string" || value.childNodes.length));
    return h(
      "dl",
      {},
      told.map(([label, value]) => [h("dt", {}, label), h("dd", {}, value)]),
    );
  }

  showNode(node) {
    const region = currentRegion();
    const module = region.module(node);
    const type = shared(region.nodes.module_type[node]);
    const rows = [
      ["op", shared(region.nodes.target[node])],
      ["value", shared(region.nodes.shape[node])],
      ["bytes", region.nodes.nbytes[node] ? bytesText(region.nodes.nbytes[node]) : ""],
      ["FLOPs", this.flops(node)],
      ["module", region.nodes.module[node] >= 0 ? `${module || "(model)"}${type ? `, ${type}` : ""}` : "not known"],
      ["line", shared(region.nodes.line[node])],
      ["saved", this.saved(node)],
      ["recomputed", region.isRecomputed(node) ? "runs in the forward and again in the backward" : ""],
      ["same as", this.replaced(node)],
      ["lives", this.lives(node)],
      ["from", this.nodes(region.producers(node))],
      ["read in forward", this.nodes(region.readers(node).filter((each) => region.flags(each) & FORWARD))],
      ["read in backward", this.nodes(this.backwardReaders(node))],
    ];
    fill(
      this.panel,
      h(
        "div",
        { class: "head" },
        h("strong", {}, region.label(node)),
        h("code", {}, region.name(node)),
        badgesOf(region, node),
        copyButton(() => window.location.href.split("#")[0] + addressOf(node), "Copy link"),
        this.close(),
      ),
      h("div", { class: "body" }, this.facts(rows)),
    );
  }

  flops(node) {
    const { flops } = currentRegion().nodes;
    if (flops[node] === null) return "no formula known";
    return flops[node] ? magnitudeText(flops[node], "FLOP") : "";
  }

  saved(node) {
    const region = currentRegion();
    const place = region.savedByNode.get(node);
    if (place === undefined) return "";
    const { values } = region.data.saved;
    const reason = `${shared(values.reason[place])} (rule: ${shared(values.rule[place])})`;
    if (values.category[place] !== "activation") return `${values.category[place]}: in memory anyway; ${reason}`;
    const shares = values.storage.flatMap((storage, other) =>
      other !== place && storage >= 0 && storage === values.storage[place] ? [values.node[other]] : [],
    );
    return h(
      "span",
      {},
      `costs ${bytesText(values.nbytes[place])} because: ${reason}`,
      shares.length ? h("span", {}, "; one storage with ", this.nodes(shares)) : null,
    );
  }

  replaced(node) {
    const region = currentRegion();
    const pair = region.nodes.replaced.find(([old]) => old === node);
    return pair ? h("span", {}, "computed as ", this.nodes([pair[1]])) : "";
  }

  lives(node) {
    const { memory } = currentRegion().data;
    const texts = [];
    for (let i = 0; i < memory.node.length; i += 1) {
      if (memory.node[i] !== node) continue;
      const last = memory.born[i] + memory.life[i];
      const use = USE_STYLES[memory.uses[memory.use[i]]].name;
      texts.push(
        `${bytesText(memory.nbytes[i])} from op ${countText(memory.born[i] + 1)} to ${countText(last + 1)} (${use})`,
      );
    }
    return texts.join("; ");
  }

  backwardReaders(node) {
    const region = currentRegion();
    return region.readers(node).filter((each) => region.flags(each) & BACKWARD);
  }

  nodes(nodes) {
    const shown = nodes.slice(0, NODES_SHOWN).map((node) => nodeButton(currentRegion(), node));
    const rest = nodes.length - shown.length;
    return h(
      "span",
      { class: "nodes" },
      shown,
      rest > 0 ? h("span", { class: "muted" }, `and ${countText(rest)} more`) : null,
    );
  }
}

/** What a node is, in words and colours. */
function kindsOf(region, node) {
  const flags = region.flags(node);
  const kinds = [];
  if (flags & PLACEHOLDER) kinds.push(["plain", shared(region.nodes.target[node])]);
  if (region.isRecomputed(node)) kinds.push(["recomputed", "recomputed"]);
  else if (flags & FORWARD) kinds.push(["forward", "forward"]);
  else if (flags & BACKWARD) kinds.push(["backward", "backward"]);
  if (flags & SAVED) kinds.push(["saved", "saved"]);
  if (flags & KEPT) kinds.push(["plain", "read by the backward"]);
  if (flags & VIEW) kinds.push(["plain", "view"]);
  if (flags & RANDOM) kinds.push(["plain", "random"]);
  if (flags & RESULT) kinds.push(["plain", "result"]);
  if (flags & GRADIENT) kinds.push(["plain", "gradient"]);
  if (flags & UNUSED) kinds.push(["plain", "not run"]);
  return kinds;
}

function badgesOf(region, node) {
  return kindsOf(region, node).map(([kind, label]) => h("span", { class: `badge ${kind}` }, label));
}

function nodeButton(region, node) {
  const kinds = kindsOf(region, node)
    .map(([kind]) => kind)
    .filter((kind) => kind !== "plain");
  const where = region.module(node) ? ` of ${region.module(node)}` : "";
  return h(
    "button",
    {
      type: "button",
      class: `node ${kinds.join(" ")}`,
      title: `${region.label(node)}${where}\n${shared(region.nodes.shape[node])}`,
      onclick: () => select(node, "inspector"),
    },
    region.name(node),
  );
}
