/* The graph on its canvas: pan, zoom, open and close, select. */

const MOST_SCALE = 3;

class GraphView {
  constructor() {
    this.canvas = byId("graph-canvas");
    this.tip = byId("graph-tip");
    this.place = { scale: 1, x: 0, y: 0 };
    this.chosen = { items: new Map(), links: [] };
    this.folded = true;
    this.pictures = new Map();
    this.paint = onNextFrame(() => this.paintNow());
    this.listen();
    new ResizeObserver(() => this.resized()).observe(this.canvas);
    when("region", () => this.reset());
    when("select", ({ from }) => this.follow(from));
    when("theme", () => this.paint());
    this.reset();
  }

  paintNow() {
    const start = performance.now();
    paintGraph(this);
    this.lastPaintMs = performance.now() - start;
  }

  get data() {
    return currentRegion().data.picture;
  }

  /** The picture of the view that is on: layers folded, or each by itself. */
  get picture() {
    const number = this.folded || this.data.views.length < 2 ? 0 : 1;
    const key = `${state.region} ${number}`;
    if (!this.pictures.has(key)) this.pictures.set(key, new Picture(this.data, this.data.views[number]));
    return this.pictures.get(key);
  }

  reset() {
    this.folded = true;
    this.show(new Set(), new Set());
    this.fit();
  }

  /** Shows the view with these boxes open and these modules closed. */
  show(open, closed) {
    this.open = open;
    this.closed = closed;
    this.arrangement = new Arrangement(this.picture, open, closed);
    this.batches = new Batches(this.arrangement);
    this.choose();
    byId("graph-empty").hidden = this.arrangement.items.length > 0;
    byId("graph-empty").textContent = "This region has no op to draw.";
    this.tools();
    this.paint();
  }

  tools() {
    const button = (label, title, run, props = {}) =>
      h("button", { type: "button", title, onclick: run, ...props }, label);
    const many = this.data.views.length > 1;
    const openable = this.picture.boxes.inner.some((inner) => inner >= 0);
    fill(
      byId("graph-tools"),
      many
        ? button("×N", "Equal layers drawn once, or each by itself (L)", () => this.toggleLayers(), {
            id: "graph-layers",
            "aria-pressed": String(this.folded),
          })
        : null,
      openable ? button("Open all", "Show every op (Shift+E)", () => this.openAll(), { id: "graph-open" }) : null,
      button("Close all", "Modules as boxes (Shift+C)", () => this.closeAll(), {
        id: "graph-close",
        disabled: !this.open.size && !this.picture.groups.path.length,
      }),
      this.open.size || this.closed.size
        ? button("Reset", "As it was at first", () => this.show(new Set(), new Set()), { id: "graph-reset" })
        : null,
      h("span", { class: "gap" }),
      button("−", "Zoom out (−)", () => this.zoom(1 / 1.3), { "aria-label": "Zoom out" }),
      button("+", "Zoom in (+)", () => this.zoom(1.3), { "aria-label": "Zoom in" }),
      button("Fit", "Fit the window (0)", () => this.fit(true), { id: "graph-fit" }),
    );
  }

  toggleLayers() {
    if (this.data.views.length < 2) return;
    this.folded = !this.folded;
    this.show(new Set(), new Set());
    this.fit();
    this.reveal();
  }

  openAll() {
    const open = new Set();
    this.picture.boxes.inner.forEach((inner, box) => {
      if (inner >= 0) open.add(box);
    });
    this.keepPlace(() => this.show(open, new Set()));
  }

  closeAll() {
    const { groups } = this.picture;
    const closed = new Set(groups.path.filter((_, group) => groups.parent[group] < 0));
    this.keepPlace(() => this.show(new Set(), closed));
  }

  /** Opens or closes a box, or the module behind a frame; both sides of a module go together. */
  toggle(item) {
    if (item.group >= 0) {
      const closed = new Set(this.closed);
      closed.delete(this.picture.groups.path[item.group]);
      this.keepPlace(() => this.show(this.open, closed), item);
      return;
    }
    if (item.inner < 0) return;
    const open = new Set(this.open);
    for (const box of this.twins(item.box)) {
      if (item.open) open.delete(box);
      else if (this.picture.boxes.inner[box] >= 0) open.add(box);
    }
    this.keepPlace(() => this.show(open, this.closed), item);
  }

  /** A module's boxes of all sides; an op's own. */
  twins(box) {
    const { boxes } = this.picture;
    if (this.picture.kind(box) !== "module") return [box];
    return boxes.title.flatMap((title, other) =>
      title === boxes.title[box] && this.picture.kind(other) === "module" ? [other] : [],
    );
  }

  closeGroup(group) {
    this.keepPlace(() => this.show(this.open, new Set([...this.closed, this.picture.groups.path[group]])));
  }

  /** Runs a change and keeps what it is about (or the middle of the window) where it was. */
  keepPlace(change, item = null) {
    const before = this.arrangement;
    const middle = { x: this.canvas.clientWidth / 2, y: this.canvas.clientHeight / 2 };
    const world = this.toWorld(middle);
    const share = (world.y - (before.rows[0]?.newTop ?? 0)) / Math.max(1, before.height);
    const at = item ? this.toScreen({ x: item.x + item.w / 2, y: item.y }) : null;
    change();
    const after =
      item && item.box >= 0
        ? this.arrangement.itemOfBox[item.box]
        : item
          ? this.arrangement.items.find((each) => each.box >= 0 && this.picture.boxes.group[each.box] === item.group)
          : null;
    if (after && at) {
      this.place.x = at.x - (after.x + after.w / 2) * this.place.scale;
      this.place.y = at.y - after.y * this.place.scale;
    } else this.place.y = middle.y - share * this.arrangement.height * this.place.scale;
    this.paint();
  }

  toWorld({ x, y }) {
    return { x: (x - this.place.x) / this.place.scale, y: (y - this.place.y) / this.place.scale };
  }

  toScreen({ x, y }) {
    return { x: x * this.place.scale + this.place.x, y: y * this.place.scale + this.place.y };
  }

  /** The whole graph in the window; where that would be too small to read, its top over the window's width. */
  fit(whole = false) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !this.arrangement) return;
    const margin = 14;
    const legend = byId("graph-legend").offsetHeight;
    const { left, width: wide, height: high } = this.arrangement;
    const across = (width - 2 * margin) / Math.max(1, wide);
    const down = (height - 2 * margin - legend) / Math.max(1, high);
    let scale = Math.min(across, down, 1.15);
    if (!whole && scale < 0.55) scale = Math.min(Math.max(across, 0.5), 0.9);
    this.place = { scale, x: (width - wide * scale) / 2 - left * scale, y: margin };
    if (wide * scale > width) this.place.x = margin - left * scale;
    this.fitted = true;
    this.paint();
  }

  resized() {
    if (!this.fitted || !this.seen) this.fit();
    this.seen = this.canvas.clientWidth > 0;
    this.paint();
  }

  zoom(factor, at = { x: this.canvas.clientWidth / 2, y: this.canvas.clientHeight / 2 }) {
    const world = this.toWorld(at);
    const least = Math.min(0.02, (0.8 * this.canvas.clientHeight) / Math.max(1, this.arrangement.height));
    this.place.scale = Math.max(least, Math.min(MOST_SCALE, this.place.scale * factor));
    this.place.x = at.x - world.x * this.place.scale;
    this.place.y = at.y - world.y * this.place.scale;
    this.paint();
  }

  pan(dx, dy) {
    this.place.x += dx;
    this.place.y += dy;
    this.paint();
  }

  /** What is at a point of the canvas: an item, or a frame's head. */
  hit(point) {
    const { x, y } = this.toWorld(point);
    const within = (box) => x >= box.x && x <= box.x + box.w && y >= box.y && y <= box.y + box.h;
    const leaf = this.arrangement.leaves.find(within);
    if (leaf) return { item: leaf };
    const item = this.arrangement.items.find(within);
    if (item) return { item };
    const head = this.arrangement.frames.findLast((frame) => within({ ...frame, h: 22, w: Math.min(frame.w, 220) }));
    return head ? { frame: head } : {};
  }

  /** The nodes behind an item. */
  nodesOf(item) {
    if (item.group >= 0) return item.places.flatMap((box) => this.picture.nodesOf(box));
    if (item.leaf >= 0) return this.picture.leafNodes(item.box, item.leaf);
    return this.picture.nodesOf(item.box);
  }

  pick(item) {
    const nodes = [...new Set(this.nodesOf(item))];
    mark(nodes, "graph");
  }

  /** Brings what was selected elsewhere into sight. */
  follow(from) {
    this.choose();
    if (from !== "graph") this.reveal();
    this.paint();
  }

  reveal() {
    const item = this.chosen.items.keys().next().value;
    if (!item || !this.canvas.clientWidth) return;
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const at = this.toScreen(item);
    const end = this.toScreen({ x: item.x + item.w, y: item.y + item.h });
    if (this.place.scale >= READABLE && at.x >= 0 && at.y >= 0 && end.x <= width && end.y <= height) return;
    const scale = Math.max(this.place.scale, 0.75);
    this.place = {
      scale,
      x: width / 2 - (item.x + item.w / 2) * scale,
      y: height / 2 - (item.y + item.h / 2) * scale,
    };
    this.paint();
  }

  choose() {
    this.chosen = chooseItems(this);
  }
}

/** A node that has a box: for a view, what it is a view of. */
function drawnNode(region, picture, node) {
  let each = node;
  for (let steps = 0; steps < 40 && !picture.holders(each).length; steps += 1) {
    const inputs = region.inputsOf(each);
    if (!inputs.length) return -1;
    [each] = inputs;
  }
  return picture.holders(each).length ? each : -1;
}

const NEIGHBOURS_OF = 400; // of more marked nodes, the neighbours would be nearly everything

/** The items to show as chosen: of the selected nodes, of what they are computed from, and of who reads them. */
function chooseItems({ arrangement, picture }) {
  const region = currentRegion();
  const chosen = state.node >= 0 ? [state.node] : state.marked;
  const items = new Map();
  const itemsOf = (node) => {
    const drawn = drawnNode(region, picture, node);
    const holders = drawn < 0 ? [] : picture.holders(drawn);
    return holders.map((box) => arrangement.itemFor(box, drawn)).filter(Boolean);
  };
  for (const node of chosen) for (const item of itemsOf(node)) items.set(item, "core");
  if (chosen.length > NEIGHBOURS_OF) return { items, links: [] };
  const base = (item) => (item.leaf >= 0 ? arrangement.itemOfBox[item.box] : item);
  const core = new Set([...items.keys()].map(base));
  const near = new Set(neighboursOf(region, picture, chosen).flatMap(itemsOf));
  const around = new Set([...near].map(base));
  const links = arrangement.links.filter(
    ({ from, to }) =>
      (core.has(from) && (core.has(to) || around.has(to))) || (core.has(to) && (core.has(from) || around.has(from))),
  );
  const ends = new Set(links.flatMap(({ from, to }) => [from, to]));
  for (const item of near) if (ends.has(base(item)) && !items.has(item)) items.set(item, "near");
  return { items, links };
}

/** What nodes are computed from and who reads them; of a view, who reads what it is a view of, too. */
function neighboursOf(region, picture, nodes) {
  const found = new Set();
  for (const node of nodes) {
    const drawn = drawnNode(region, picture, node);
    if (drawn < 0) continue;
    for (const each of [...region.producers(drawn), ...region.readers(drawn), ...region.readers(node)]) found.add(each);
  }
  return [...found];
}
