/* Pointer, wheel and keys on the graph's canvas. */

GraphView.prototype.listen = function listen() {
  const { canvas } = this;
  const pointers = new Map();
  let moved = 0;
  let spread = 0;
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, at(event));
    moved = spread = 0;
    this.tip.hidden = true;
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    const now = at(event);
    if (!before) {
      this.point(now);
      return;
    }
    pointers.set(event.pointerId, now);
    if (pointers.size === 2) {
      const [a, b] = [...pointers.values()];
      const distance = Math.hypot(a.x - b.x, a.y - b.y);
      if (spread) this.zoom(distance / spread, { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 });
      spread = distance;
      moved += 10;
      return;
    }
    moved += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
    if (moved > 3) {
      canvas.classList.add("dragging");
      this.pan(now.x - before.x, now.y - before.y);
    }
  });
  const release = (event) => {
    if (!pointers.delete(event.pointerId)) return;
    canvas.classList.remove("dragging");
    if (event.type === "pointerup" && moved <= 3) this.clicked(at(event));
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
  canvas.addEventListener("dblclick", (event) => {
    const { item } = this.hit(at(event));
    if (item && (item.inner >= 0 || item.group >= 0)) this.toggle(item);
  });
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const lines = event.deltaMode === 1 ? 16 : 1;
      if (event.shiftKey) this.pan(-(event.deltaX || event.deltaY) * lines, 0);
      else if (event.ctrlKey || Math.abs(event.deltaX) < Math.abs(event.deltaY)) {
        this.zoom(Math.exp((-event.deltaY * lines) / (event.ctrlKey ? 120 : 500)), at(event));
      } else this.pan(-event.deltaX * lines, -event.deltaY * lines);
    },
    { passive: false },
  );
  canvas.addEventListener("keydown", (event) => this.pressed(event));
};

GraphView.prototype.clicked = function clicked(point) {
  const { item, frame } = this.hit(point);
  if (frame) {
    this.closeGroup(frame.group);
    return;
  }
  if (!item) {
    if (state.node >= 0 || state.marked.length) select(-1, "graph");
    return;
  }
  const world = this.toWorld(point);
  const onSign = item.open ? world.y < item.y + FRAME_HEAD : world.x > item.x + item.w - 18 && world.y < item.y + 18;
  if (item.open || (onSign && item.inner >= 0) || item.group >= 0) this.toggle(item);
  else this.pick(item);
};

/** What the pointer rests on. */
GraphView.prototype.point = function point(at) {
  const { item, frame } = this.hit(at);
  this.canvas.classList.toggle("pointing", Boolean(item || frame));
  this.tip.hidden = !item && !frame;
  if (this.tip.hidden) return;
  fill(this.tip, item ? this.tipOf(item) : [`${shared(this.picture.groups.label[frame.group])}: click to close`]);
  const { clientWidth: width, clientHeight: height } = this.canvas;
  const { offsetWidth: wide, offsetHeight: high } = this.tip;
  const below = at.y + 18 + high <= height;
  this.tip.style.left = `${Math.max(4, Math.min(at.x + 14, width - wide - 6))}px`;
  this.tip.style.top = `${below ? at.y + 18 : Math.max(4, at.y - high - 10)}px`;
};

GraphView.prototype.tipOf = function tipOf(item) {
  const muted = (parts) => h("div", { class: "muted" }, parts.filter(Boolean).join(" · "));
  if (item.group >= 0) return [h("strong", {}, item.text[0]), muted([item.text[1], "click to open"])];
  return item.leaf >= 0 ? this.tipOfLeaf(item, muted) : this.tipOfBox(item, muted);
};

GraphView.prototype.tipOfLeaf = function tipOfLeaf(item, muted) {
  const region = currentRegion();
  const [node, ...others] = this.nodesOf(item);
  if (node === undefined) return [h("strong", {}, shared(item.label)), muted(["only in the other step"])];
  const more = others.length ? ` and ${others.length} alike` : "";
  return [
    h("strong", {}, region.label(node)),
    ` ${region.name(node)}${more}`,
    muted([shared(region.nodes.shape[node]), shared(region.nodes.line[node])]),
  ];
};

GraphView.prototype.tipOfBox = function tipOfBox({ box, inner, open, ...item }, muted) {
  const { boxes } = this.picture;
  const counted = this.picture.kind(box) === "saved" ? "value" : "op";
  const flops = boxes.flops[box];
  const layers = boxes.layers[box] >= 0 ? `, ${shared(boxes.layers[box])}` : "";
  const change = this.data.changes[boxes.change[box]];
  const lines = [
    [shared(boxes.type[box]), lookOf(this.picture, item), plural(boxes.ops[box], counted)],
    [
      boxes.nbytes[box] ? bytesText(boxes.nbytes[box]) : "",
      flops === null ? "FLOPs unknown" : flops ? magnitudeText(flops, "FLOP") : "",
    ],
    [boxes.count[box] > 1 ? `${boxes.count[box]} layers${layers}` : ""],
    [change === "same" ? "" : change, boxes.was[box] >= 0 ? `was ${shared(boxes.was[box])}` : ""],
    [inner >= 0 && !open ? "double-click to open" : ""],
  ];
  return [h("strong", {}, shared(boxes.title[box])), lines.filter((parts) => parts.some(Boolean)).map(muted)];
};

GraphView.prototype.pressed = function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const step = event.shiftKey ? 240 : 60;
  const region = currentRegion();
  const chosen = this.chosen.items.keys().next().value;
  const go = (nodes) => (nodes.length ? select(nodes[0], "keys") : say("There is none."));
  const actions = {
    ArrowLeft: () => this.pan(step, 0),
    ArrowRight: () => this.pan(-step, 0),
    ArrowUp: () => this.pan(0, step),
    ArrowDown: () => this.pan(0, -step),
    "+": () => this.zoom(1.3),
    "=": () => this.zoom(1.3),
    "-": () => this.zoom(1 / 1.3),
    0: () => this.fit(true),
    Enter: () => {
      const item = chosen && (chosen.leaf >= 0 ? this.arrangement.itemOfBox[chosen.box] : chosen);
      if (item) this.toggle(item);
    },
    E: () => this.openAll(),
    C: () => this.closeAll(),
    l: () => this.toggleLayers(),
    p: () => state.node >= 0 && go(region.producers(state.node)),
    u: () => state.node >= 0 && go(region.readers(state.node)),
    b: () => state.node >= 0 && go(region.readers(state.node).filter((node) => region.flags(node) & BACKWARD)),
  };
  if (!(event.key in actions)) return;
  actions[event.key]();
  event.preventDefault();
  event.stopPropagation();
};

const LEGEND_SHAPES = {
  cut: "M4 1H18L21 4V9L18 12H4L1 9V4Z",
  pill: "M6.5 1H15.5A5.5 5.5 0 0 1 15.5 12H6.5A5.5 5.5 0 0 1 6.5 1Z",
  round: "M4 1H18A3 3 0 0 1 21 4V9A3 3 0 0 1 18 12H4A3 3 0 0 1 1 9V4A3 3 0 0 1 4 1Z",
};
const LEGEND = { forward: "forward", saved: "saved for backward", backward: "backward", recomputed: "recomputed" };

/** The meaning of shapes and colours; of outlines, where two steps are compared. */
function showGraphLegend() {
  const sample = ({ shape, fill: inside, line, dash }) => {
    const path = svg("path", { d: LEGEND_SHAPES[shape], "stroke-dasharray": (dash ?? []).join(" ") });
    path.style.fill = inside ? `var(--${inside})` : "none";
    path.style.stroke = `var(--${line})`;
    path.style.strokeWidth = inside ? 1 : 2;
    return svg("svg", { width: 22, height: 13 }, path);
  };
  const looks = Object.entries(LEGEND).map(([look, name]) => h("span", {}, sample(LOOKS[look]), name));
  const found = new Set(
    regions.flatMap(({ data }) =>
      data.picture.views.flatMap((view) => view.boxes.change.map((each) => data.picture.changes[each])),
    ),
  );
  const outlines = Object.entries(CHANGE_LINES)
    .filter(([name]) => found.has(name))
    .map(([name, line]) =>
      h("span", {}, sample({ shape: "round", line, dash: name === "removed" ? [4, 3] : [] }), name),
    );
  fill(byId("graph-legend"), looks, outlines);
}
