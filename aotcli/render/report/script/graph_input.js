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
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    if (event.shiftKey) this.pan(-(event.deltaX || event.deltaY) * lines, 0);
    else if (event.ctrlKey || Math.abs(event.deltaX) < Math.abs(event.deltaY)) {
      this.zoom(Math.exp((-event.deltaY * lines) / (event.ctrlKey ? 120 : 500)), at(event));
    } else this.pan(-event.deltaX * lines, -event.deltaY * lines);
  }, { passive: false });
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
  this.tip.style.left = `${Math.max(4, Math.min(at.x + 14, width - this.tip.offsetWidth - 6))}px`;
  this.tip.style.top = `${at.y + 18 + this.tip.offsetHeight > height ? Math.max(4, at.y - this.tip.offsetHeight - 10) : at.y + 18}px`;
};

GraphView.prototype.tipOf = function tipOf(item) {
  const { boxes } = this.picture;
  const region = currentRegion();
  if (item.group >= 0) return [h("strong", {}, item.text[0]), h("div", { class: "muted" }, `${item.text[1]} · click to open`)];
  if (item.leaf >= 0) {
    const nodes = this.nodesOf(item);
    const node = nodes[0];
    return [h("strong", {}, `${region.label(node)}`), ` ${region.name(node)}${nodes.length > 1 ? ` and ${nodes.length - 1} alike` : ""}`,
      h("div", { class: "muted" }, [shared(region.nodes.shape[node]), shared(region.nodes.line[node])].filter(Boolean).join(" · "))];
  }
  const { box } = item;
  const count = boxes.count[box];
  const lines = [
    [shared(boxes.type[box]), lookOf(this.picture, item), plural(boxes.ops[box], this.picture.kind(box) === "saved" ? "value" : "op")],
    [boxes.nbytes[box] ? bytesText(boxes.nbytes[box]) : "",
      boxes.flops[box] === null ? "FLOPs unknown" : boxes.flops[box] ? magnitudeText(boxes.flops[box], "FLOP") : ""],
    [count > 1 ? `${count} layers${boxes.layers[box] >= 0 ? `, ${shared(boxes.layers[box])}` : ""}` : ""],
    [boxes.was[box] >= 0 ? `was ${shared(boxes.was[box])}` : ""],
    [item.inner >= 0 && !item.open ? "double-click to open" : ""],
  ];
  return [h("strong", {}, shared(boxes.title[box])), lines.map((parts) => parts.filter(Boolean).join(" · ")).filter(Boolean)
    .map((line) => h("div", { class: "muted" }, line))];
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

/** The meaning of shapes and colours. */
function showGraphLegend() {
  const sample = (look) => {
    const { shape, line, fill: inside, dash } = LOOKS[look];
    const d = shape === "cut" ? "M4 1H18L21 4V9L18 12H4L1 9V4Z" : `M${shape === "pill" ? 6.5 : 4} 1H${shape === "pill" ? 15.5 : 18}A${shape === "pill" ? "5.5 5.5 0 0 1 15.5 12" : "3 3 0 0 1 21 4V9A3 3 0 0 1 18 12"}H${shape === "pill" ? 6.5 : 4}A${shape === "pill" ? "5.5 5.5 0 0 1 6.5 1" : "3 3 0 0 1 1 9V4A3 3 0 0 1 4 1"}Z`;
    const path = svg("path", { d, "stroke-dasharray": (dash ?? []).join(" ") });
    path.style.fill = `var(--${inside})`;
    path.style.stroke = `var(--${line})`;
    return svg("svg", { width: 22, height: 13 }, path);
  };
  const looks = [["forward", "forward"], ["saved", "saved for backward"], ["backward", "backward"], ["recomputed", "recomputed"]];
  fill(byId("graph-legend"), looks.map(([look, name]) => h("span", {}, sample(look), name)));
}
