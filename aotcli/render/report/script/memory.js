/* Memory over forward and backward: a chart of what is live, stacked by use, and the list of what is live at one op. */

const USE_STYLES = {
  saved: { name: "saved", color: "saved-area" },
  result: { name: "results", color: "result" },
  gradient: { name: "gradients", color: "gradient" },
  recomputed: { name: "recomputed", color: "recomputed" },
  "random state": { name: "random states", color: "random-state" },
  tangent: { name: "incoming", color: "tangent" },
  temporary: { name: "temporary", color: "temporary" },
};

/** Live bytes by use at every step, from the lives of allocations; `memory.live_bytes` gets their sum. */
function stackOf(memory) {
  const steps = memory.steps.length;
  const layers = memory.uses.map(() => new Float64Array(steps + 1));
  for (let i = 0; i < memory.node.length; i += 1) {
    layers[memory.use[i]][memory.born[i]] += memory.nbytes[i];
    layers[memory.use[i]][memory.born[i] + memory.life[i] + 1] -= memory.nbytes[i];
  }
  for (const layer of layers) {
    for (let step = 1; step <= steps; step += 1) layer[step] += layer[step - 1];
  }
  memory.live_bytes = new Float64Array(steps);
  for (const layer of layers) for (let step = 0; step < steps; step += 1) memory.live_bytes[step] += layer[step];
  memory.layers = layers;
  return layers;
}

class MemoryChart {
  constructor() {
    this.canvas = byId("memory-canvas");
    this.tip = byId("memory-tip");
    this.hover = -1;
    this.paint = onNextFrame(() => paintMemory(this));
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => this.leave());
    this.canvas.addEventListener("click", (event) => this.choose(this.stepAt(event)));
    this.canvas.addEventListener("keydown", (event) => this.pressed(event));
    new ResizeObserver(() => this.paint()).observe(this.canvas);
    when("region", () => this.reset());
    when("select", () => this.paint());
    when("step", () => this.paint());
    when("theme", () => this.paint());
    this.reset();
  }

  reset() {
    this.memory = currentRegion().data.memory;
    this.steps = this.memory.steps.length;
    this.layers = this.memory.layers ?? stackOf(this.memory);
    const used = this.memory.uses.filter((_, place) => this.layers[place].some((nbytes) => nbytes > 0));
    fill(
      byId("memory-legend"),
      used.map((use) =>
        h("span", {}, h("i", { style: { background: `var(--${USE_STYLES[use].color})` } }), USE_STYLES[use].name),
      ),
    );
    this.leave();
  }

  /** The chart's place in the canvas, in pixels. */
  frame() {
    return { left: 62, right: this.canvas.clientWidth - 12, top: 26, bottom: this.canvas.clientHeight - 20 };
  }

  x(step) {
    const { left, right } = this.frame();
    return left + ((step + 0.5) / Math.max(1, this.steps)) * (right - left);
  }

  stepAt(event) {
    const { left, right } = this.frame();
    const at = event.clientX - this.canvas.getBoundingClientRect().left;
    return Math.max(0, Math.min(this.steps - 1, Math.floor(((at - left) / (right - left)) * this.steps)));
  }

  get step() {
    return state.step >= 0 ? state.step : this.memory.peak_at;
  }

  point(event) {
    if (!this.steps) return;
    this.hover = this.stepAt(event);
    this.paint();
    const region = currentRegion();
    const node = this.memory.steps[this.hover];
    const half = this.hover < this.memory.forward_steps ? "forward" : "backward";
    fill(
      this.tip,
      h("strong", { class: "num" }, bytesText(this.memory.live_bytes[this.hover])),
      ` live at op ${countText(this.hover + 1)} of ${countText(this.steps)}, ${half}`,
      node >= 0 ? h("div", {}, `${region.label(node)} · ${region.name(node)}`) : null,
      node >= 0 && region.module(node) ? h("div", { class: "muted" }, region.module(node)) : null,
    );
    this.tip.hidden = false;
    const stage = this.canvas.parentElement.getBoundingClientRect();
    const left = event.clientX - stage.left;
    this.tip.style.left = `${left > stage.width / 2 ? Math.max(4, left - this.tip.offsetWidth - 14) : left + 14}px`;
    this.tip.style.top = "26px";
  }

  leave() {
    this.hover = -1;
    this.tip.hidden = true;
    this.paint();
  }

  choose(step) {
    if (!this.steps) return;
    showStep(step);
    const node = this.memory.steps[step];
    if (node >= 0) select(node, "memory");
    showTab("memory");
  }

  pressed(event) {
    const moves = { ArrowLeft: this.step - 1, ArrowRight: this.step + 1, Home: 0, End: this.steps - 1 };
    if (event.key in moves && this.steps) {
      this.choose(Math.max(0, Math.min(this.steps - 1, moves[event.key])));
      event.preventDefault();
      event.stopPropagation();
    }
  }
}

/** The list of what is live at the chosen step. */
class LiveTable {
  constructor(panel) {
    this.title = h("div", { class: "controls" });
    this.body = h("tbody");
    const heads = ["Bytes", "What", "Use", "Module", "Lives"].map((title, place) =>
      h("th", { scope: "col", class: place === 0 ? "right" : "" }, h("span", {}, title)),
    );
    panel.append(
      this.title,
      h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, heads)), this.body)),
    );
    this.body.addEventListener("click", (event) => this.clicked(event));
    this.body.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.clicked(event);
    });
    when("region", () => this.show());
    when("step", () => this.show());
    this.show();
  }

  show() {
    const { memory } = currentRegion().data;
    if (!memory.steps.length) {
      fill(this.title, "No op runs in this region.");
      fill(this.body);
      return;
    }
    if (!memory.layers) stackOf(memory);
    const step = state.step >= 0 ? state.step : memory.peak_at;
    const live = [];
    for (let i = 0; i < memory.node.length; i += 1) {
      if (memory.born[i] <= step && step <= memory.born[i] + memory.life[i]) live.push(i);
    }
    live.sort((a, b) => memory.nbytes[b] - memory.nbytes[a] || memory.born[a] - memory.born[b]);
    this.heading(memory, step, live.length);
    const most = 300;
    const rows = live.slice(0, most).map((place) => this.row(memory, place, step));
    if (live.length > most) {
      const rest = live.slice(most).reduce((sum, place) => sum + memory.nbytes[place], 0);
      rows.push(
        h(
          "tr",
          { class: "more" },
          h("td", { colSpan: 5 }, `and ${plural(live.length - most, "smaller one")}, ${bytesText(rest)} together`),
        ),
      );
    }
    fill(this.body, rows);
  }

  heading(memory, step, count) {
    const region = currentRegion();
    const node = memory.steps[step];
    const atPeak = step === memory.peak_at;
    const half = step < memory.forward_steps ? "forward" : "backward";
    const where = node >= 0 ? `${region.label(node)}${region.module(node) ? ` of ${region.module(node)}` : ""}` : "?";
    fill(
      this.title,
      h(
        "span",
        {},
        h("strong", { class: "num" }, bytesText(memory.live_bytes[step])),
        atPeak ? " live at the peak: " : " live at ",
        node >= 0 ? h("button", { class: "link", type: "button", onclick: () => select(node, "live") }, where) : where,
        `, ${half}`,
      ),
      h("span", { class: "count" }, plural(count, "allocation")),
      atPeak ? null : h("button", { type: "button", onclick: () => showStep(-1) }, "Go to the peak"),
    );
  }

  row(memory, place, step) {
    const region = currentRegion();
    const node = memory.node[place];
    const use = USE_STYLES[memory.uses[memory.use[place]]];
    const made = memory.born[place] === step ? ", made here" : "";
    const element = h(
      "tr",
      { tabIndex: 0 },
      h("td", { class: "right" }, bytesText(memory.nbytes[place])),
      h(
        "td",
        { class: "clip", title: node >= 0 ? region.name(node) : "" },
        node >= 0 ? `${region.label(node)} · ${region.name(node)}` : "?",
      ),
      h("td", {}, h("i", { class: "swatch", style: { background: `var(--${use.color})` } }), use.name),
      h("td", { class: "clip", title: node >= 0 ? region.module(node) : "" }, node >= 0 ? region.module(node) : ""),
      h("td", { class: "num muted" }, `${plural(memory.life[place] + 1, "op")}${made}`),
    );
    element.node = node;
    return element;
  }

  clicked(event) {
    const element = event.target.closest("tr");
    if (element && element.node >= 0) select(element.node, "live");
  }
}
