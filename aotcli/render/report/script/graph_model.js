/* Where everything of the graph stands for a set of open boxes and closed modules.

Python laid out the base drawing and the inside of every box that can be opened. Opening a box puts its inner drawing,
in a frame, in its place; closing a module leaves one box for each of its sides. What is left to do is arithmetic: the
rows of the base grow or shrink to what they hold now, and within a row, boxes move aside. */

const FRAME_HEAD = 22;
const FRAME_PAD = 10;
const ROW_GAP = 12;
const GLYPH_WIDTH = 6.8; // of a label's letters, on average

/** Lists of a column of lists, by number. */
function listsOf(table, name) {
  const starts = startsOf(table[`${name}_counts`]);
  return (place) => table[name].slice(starts[place], starts[place + 1]);
}

/** A list of links' knots as absolute points. */
function knotsOf(table, name) {
  const starts = startsOf(table[`${name}_counts`]);
  return (place) => {
    const points = [];
    let x = 0;
    let y = 0;
    for (let i = starts[place]; i < starts[place + 1]; i += 2) {
      x += table[name][i];
      y += table[name][i + 1];
      points.push({ x, y });
    }
    return points;
  };
}

/** One view of a region's picture, as Python made it, with what has to be looked up in it. */
class Picture {
  constructor(picture, view) {
    this.picture = picture;
    this.view = view;
    this.boxes = view.boxes;
    this.links = view.links;
    this.groups = view.groups;
    this.size = view.boxes.x.length;
    this.nodesOf = listsOf(view.boxes, "nodes");
    this.knots = knotsOf(view.links, "knots");
    this.farKnots = knotsOf(view.links, "far_knots");
    this.sourceEnds = listsOf(view.links, "source_ends");
    this.targetEnds = listsOf(view.links, "target_ends");
    this.leafBase = startsOf(view.boxes.leaf_counts);
    this.leafStarts = startsOf(view.boxes.leaves);
    this.chains = view.groups.path.map((_, group) => this.#chain(group));
    this.boxesOfNode = null;
  }

  #chain(group) {
    const chain = [];
    for (let each = group; each >= 0; each = this.groups.parent[each]) chain.unshift(each);
    return chain;
  }

  /** The nodes behind box number `leaf` inside a box. */
  leafNodes(box, leaf) {
    const place = this.leafBase[box] + leaf;
    return this.boxes.leaf_nodes.slice(this.leafStarts[place], this.leafStarts[place + 1]);
  }

  /** The boxes that a node is in: it may run in both halves and be saved. */
  holders(node) {
    if (!this.boxesOfNode) {
      this.boxesOfNode = new Map();
      for (let box = 0; box < this.size; box += 1) {
        for (const each of this.nodesOf(box)) {
          if (this.boxesOfNode.has(each)) this.boxesOfNode.get(each).push(box);
          else this.boxesOfNode.set(each, [box]);
        }
      }
    }
    return this.boxesOfNode.get(node) ?? [];
  }

  kind(box) {
    return this.picture.kinds[this.boxes.kind[box]];
  }

  linkKind(link) {
    return this.picture.link_kinds[this.links.kind[link]];
  }

  /** The outermost closed group around a box, or -1. */
  closedAround(box, closed) {
    const group = this.boxes.group[box];
    if (group < 0 || !closed.size) return -1;
    return this.chains[group].find((each) => closed.has(this.groups.path[each])) ?? -1;
  }
}

/** Everything in its place. Items are the boxes that show; a box that is open is the frame around its inner items. */
class Arrangement {
  constructor(picture, open, closed) {
    this.picture = picture;
    this.open = open;
    this.closed = closed;
    this.items = [];
    this.itemOfBox = new Array(picture.size).fill(null);
    this.#makeItems();
    this.#placeRows();
    this.#placeInner();
    this.links = arrangeLinks(this);
    this.frames = arrangeFrames(this);
    this.#measure();
  }

  #makeItems() {
    const { picture } = this;
    const hidden = this.#hidden();
    const proxies = new Map();
    for (let box = 0; box < picture.size; box += 1) {
      if (hidden[box] < 0) {
        this.itemOfBox[box] = this.#boxItem(box);
        this.items.push(this.itemOfBox[box]);
        continue;
      }
      const key = `${hidden[box]} ${picture.kind(box) === "saved"}`;
      if (!proxies.has(key)) proxies.set(key, []);
      proxies.get(key).push(box);
    }
    for (const [key, boxes] of proxies) {
      const item = this.#proxy(Number(key.split(" ")[0]), boxes);
      this.items.push(item);
      for (const box of boxes) this.itemOfBox[box] = item;
    }
  }

  /** For each box, the closed group that hides it, or -1. What a hidden box alone makes and saves is hidden with it. */
  #hidden() {
    const { picture, closed } = this;
    const hidden = new Int32Array(picture.size).fill(-1);
    if (!closed.size) return hidden;
    for (let box = 0; box < picture.size; box += 1) hidden[box] = picture.closedAround(box, closed);
    const { source, target } = picture.links;
    for (let link = 0; link < source.length; link += 1) {
      if (picture.kind(target[link]) === "saved" && hidden[source[link]] >= 0)
        hidden[target[link]] = hidden[source[link]];
    }
    return hidden;
  }

  #boxItem(box) {
    const { boxes, picture } = this.picture;
    const item = {
      box,
      group: -1,
      leaf: -1,
      row: boxes.row[box],
      kind: boxes.kind[box],
      side: boxes.side[box],
      again: boxes.again[box],
      change: boxes.change[box],
      label: boxes.label[box],
      detail: boxes.detail[box],
      x: boxes.x[box],
      y: boxes.y[box],
      w: boxes.w[box],
      h: boxes.h[box],
      inner: boxes.inner[box],
      open: false,
      changed: false,
    };
    item.centre = item.x + item.w / 2;
    item.left = item.x;
    item.right = item.x + item.w;
    if (this.open.has(box) && item.inner >= 0) {
      const drawing = picture.inner[item.inner];
      item.open = item.changed = true;
      item.w = Math.max(drawing.width + 2 * FRAME_PAD, shared(item.label).length * GLYPH_WIDTH + 46);
      item.h = drawing.height + FRAME_HEAD + FRAME_PAD;
    }
    return item;
  }

  /** One box for the boxes of a closed group on one side. */
  #proxy(group, places) {
    const { boxes, groups } = this.picture;
    const saved = this.picture.kind(places[0]) === "saved";
    const middle = places.toSorted((a, b) => boxes.y[a] - boxes.y[b])[places.length >> 1];
    const sum = (column) => places.reduce((total, box) => total + (column[box] || 0), 0);
    const label = saved
      ? `${plural(sum(boxes.ops), "value")} · ${bytesText(sum(boxes.nbytes))}`
      : shared(groups.label[group]);
    const detail = saved ? "" : plural(sum(boxes.ops), "op");
    const w = Math.max(70, Math.max(label.length, detail.length) * GLYPH_WIDTH + 26);
    const centre = places.reduce((total, box) => total + boxes.x[box] + boxes.w[box] / 2, 0) / places.length;
    return {
      box: -1,
      group,
      leaf: -1,
      places,
      row: boxes.row[middle],
      kind: boxes.kind[saved ? middle : places[0]],
      side: boxes.side[middle],
      again: 0,
      change: 0,
      text: [label, detail],
      w,
      h: saved ? 16 : 27,
      inner: -1,
      open: false,
      changed: true,
      centre,
      left: centre - w / 2,
      right: centre + w / 2,
      x: 0,
      y: 0,
    };
  }

  #placeRows() {
    const { rows } = this.picture.view;
    const count = rows.length / 2;
    this.rows = Array.from({ length: count }, (_, row) => ({
      top: rows[2 * row],
      bottom: rows[2 * row + 1],
      items: [],
      changed: false,
      newTop: 0,
      height: 0,
    }));
    for (const item of this.items) this.rows[item.row].items.push(item);
    let top = count ? rows[0] : 0;
    this.rows.forEach((row, place) => {
      row.newTop = top;
      row.changed = row.items.some((item) => item.changed) || row.items.length === 0;
      const own = row.bottom - row.top;
      row.height = row.changed ? row.items.reduce((most, item) => Math.max(most, item.h), 0) : own;
      if (row.changed) spreadRow(row);
      for (const item of row.items) {
        const middle = (item.y + (item.box >= 0 ? this.picture.boxes.h[item.box] : 0) / 2 - row.top) / own;
        item.y = row.newTop + (row.changed ? (row.height - item.h) / 2 : middle * own - item.h / 2);
      }
      const gap = place + 1 < count ? this.rows[place + 1].top - row.bottom : 0;
      top += row.height + (row.height > 0 ? gap : 0);
    });
    this.height = top;
  }

  #placeInner() {
    this.leaves = [];
    for (const item of this.items) {
      if (!item.open) continue;
      const { boxes } = this.picture.picture.inner[item.inner];
      const left = item.x + (item.w - this.picture.picture.inner[item.inner].width) / 2;
      item.dx = left;
      item.dy = item.y + FRAME_HEAD;
      item.leaves = boxes.x.map((x, leaf) => ({
        box: item.box,
        group: -1,
        leaf,
        kind: boxes.kind[leaf],
        side: boxes.side[leaf],
        again: boxes.again[leaf],
        change: boxes.change[leaf],
        label: boxes.label[leaf],
        detail: boxes.detail[leaf],
        inner: -1,
        open: false,
        x: left + x,
        y: item.dy + boxes.y[leaf],
        w: boxes.w[leaf],
        h: boxes.h[leaf],
      }));
      for (const leaf of item.leaves) this.leaves.push(leaf);
    }
    this.shown = [...this.items, ...this.leaves];
  }

  #measure() {
    let left = Infinity;
    let right = -Infinity;
    for (const { x, w } of [...this.items, ...this.frames]) {
      if (x < left) left = x;
      if (x + w > right) right = x + w;
    }
    this.left = Number.isFinite(left) ? left : 0;
    this.width = Number.isFinite(right) ? right - this.left : 0;
  }

  /** The item that shows a node of a box: the box itself, or one inside it where it is open. */
  itemFor(box, node) {
    const item = this.itemOfBox[box];
    if (!item || !item.open) return item;
    const leaf = item.leaves.findIndex((_, place) => this.picture.leafNodes(box, place).includes(node));
    return leaf < 0 ? item : item.leaves[leaf];
  }

  /** A point of the base drawing, where it is now. */
  move(point) {
    const { rows } = this;
    let low = 0;
    let high = rows.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows[middle].bottom < point.y) low = middle + 1;
      else high = middle;
    }
    const row = rows[low];
    if (!row) return point;
    const own = Math.max(1, row.bottom - row.top);
    const y =
      point.y < row.top
        ? row.newTop - Math.min(row.top - point.y, low > 0 ? row.top - rows[low - 1].bottom : row.top - point.y)
        : row.newTop + (Math.min(point.y - row.top, own) / own) * row.height;
    return { x: row.changed ? moveWithin(row, point.x) : point.x, y };
  }
}

/** Moves the boxes of a row aside where some of them have become wider. The widest new one keeps its centre. */
function spreadRow(row) {
  const { items } = row;
  items.sort((a, b) => a.centre - b.centre);
  const changed = items.filter((item) => item.changed);
  const anchor = changed.length ? items.indexOf(changed.reduce((a, b) => (b.w > a.w ? b : a))) : -1;
  if (anchor < 0) return;
  items[anchor].x = items[anchor].centre - items[anchor].w / 2;
  for (let i = anchor + 1; i < items.length; i += 1) {
    const before = items[i - 1];
    items[i].x = Math.max(items[i].centre - items[i].w / 2, before.x + before.w + ROW_GAP);
  }
  for (let i = anchor - 1; i >= 0; i -= 1) {
    items[i].x = Math.min(items[i].centre - items[i].w / 2, items[i + 1].x - ROW_GAP - items[i].w);
  }
}

/** Where a link that passed a row at `x` passes it now: between the same boxes as before. */
function moveWithin(row, x) {
  let left = null;
  for (const item of row.items) {
    if (x < item.left) {
      if (!left) return item.x - (item.left - x);
      const share = item.left > left.right ? (x - left.right) / (item.left - left.right) : 0.5;
      return left.x + left.w + share * (item.x - left.x - left.w);
    }
    if (x <= item.right) return item.x + ((x - item.left) / Math.max(1, item.right - item.left)) * item.w;
    left = item;
  }
  return left ? left.x + left.w + (x - left.right) : x;
}
