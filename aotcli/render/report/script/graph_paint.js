/* Painting of the graph. Shapes and links are gathered into a few paths once for each arrangement, by bands from top to
bottom, so that a redraw strokes what is in sight and nothing is walked through link by link. */

const LOOKS = {
  forward: { fill: "forward-fill", line: "forward", shape: "round" },
  backward: { fill: "backward-fill", line: "backward", shape: "cut" },
  recomputed: { fill: "recomputed-fill", line: "recomputed", shape: "cut", dash: [4, 2.5] },
  saved: { fill: "saved-fill", line: "saved", shape: "pill" },
  source: { fill: "source-fill", line: "source", shape: "round" },
  end: { fill: "panel", line: "ink", shape: "pill" },
};
const LINK_LOOKS = {
  flow: { line: "flow" },
  gradient: { line: "climb" },
  saved: { line: "saved-link" },
  read: { line: "faint", dash: [2, 3] },
};
const CHANGE_LINES = {
  added: "good",
  removed: "bad",
  changed: "changed",
  "now saved": "saved",
  "now recomputed": "recomputed",
};
const BAND_HEIGHT = 900;
const LONG = 2600; // links longer than this are in no band
const READABLE = 0.42; // texts are drawn from this scale on

function lookOf(picture, item) {
  const kind = picture.picture.kinds[item.kind];
  if (kind === "saved") return "saved";
  if (kind === "param" || kind === "input") return "source";
  if (kind === "tangent" || kind === "result") return "end";
  if (item.again) return "recomputed";
  return picture.picture.sides[item.side] === "backward" ? "backward" : "forward";
}

/** Adds an item's outline to a path. */
function outline(path, look, { x, y, w, h }, grow = 0) {
  const left = x - grow;
  const top = y - grow;
  const wide = w + 2 * grow;
  const high = h + 2 * grow;
  const { shape } = LOOKS[look];
  if (shape === "cut") {
    const cut = 5;
    path.moveTo(left + cut, top);
    path.lineTo(left + wide - cut, top);
    path.lineTo(left + wide, top + cut);
    path.lineTo(left + wide, top + high - cut);
    path.lineTo(left + wide - cut, top + high);
    path.lineTo(left + cut, top + high);
    path.lineTo(left, top + high - cut);
    path.lineTo(left, top + cut);
    path.closePath();
  } else path.roundRect(left, top, wide, high, shape === "pill" ? Math.min(high / 2, 11) : 5);
}

/** A curve through points whose ends are vertical, as the layout draws it. */
function curve(path, points) {
  let { x, y } = points[0];
  path.moveTo(x, y);
  for (let i = 1; i < points.length; i += 1) {
    const next = points[i];
    if (next.x === x) path.lineTo(next.x, next.y);
    else path.bezierCurveTo(x, (y + next.y) / 2, next.x, (y + next.y) / 2, next.x, next.y);
    ({ x, y } = next);
  }
}

/** The paths of an arrangement, by band. */
class Batches {
  constructor(arrangement) {
    this.bands = new Map();
    this.long = { links: new Map(), boxes: new Map() };
    const { picture } = arrangement;
    for (const item of arrangement.shown) {
      const look = item.open ? "open" : lookOf(picture, item);
      const band = this.#band(item.y, item.y + item.h);
      const path = this.#path(band.boxes, look);
      if (item.open) path.roundRect(item.x, item.y, item.w, item.h, 8);
      else outline(path, look, item);
    }
    for (const link of arrangement.links) this.#addLink(link);
    for (const leafLink of innerLinks(arrangement)) this.#addLink(leafLink);
  }

  #band(top, bottom) {
    if (bottom - top > LONG) return this.long;
    const number = Math.floor(top / BAND_HEIGHT);
    let band = this.bands.get(number);
    if (!band) {
      band = { top, bottom, links: new Map(), boxes: new Map() };
      this.bands.set(number, band);
    }
    band.top = Math.min(band.top, top);
    band.bottom = Math.max(band.bottom, bottom);
    return band;
  }

  #path(paths, key) {
    if (!paths.has(key)) paths.set(key, new Path2D());
    return paths.get(key);
  }

  #addLink(link) {
    let top = Infinity;
    let bottom = -Infinity;
    for (const piece of link.pieces) {
      for (const { y } of piece) {
        if (y < top) top = y;
        if (y > bottom) bottom = y;
      }
    }
    if (top > bottom) return;
    const short = bottom - top < 120 ? "short" : "";
    const path = this.#path(this.#band(top, bottom).links, `${link.kind}|${Math.round(link.width * 2) / 2}|${short}`);
    for (const piece of link.pieces) curve(path, piece);
  }

  /** Bands that show between two heights, and what is in no band. */
  *inSight(top, bottom) {
    for (const band of this.bands.values()) if (band.bottom >= top && band.top <= bottom) yield band;
    yield this.long;
  }
}

/** Links inside open boxes, in the arrangement's coordinates. */
function* innerLinks(arrangement) {
  const { picture } = arrangement.picture;
  for (const item of arrangement.items) {
    if (!item.open) continue;
    const inner = picture.inner[item.inner];
    inner.knots ??= knotsOf(inner.links, "knots");
    inner.farKnots ??= knotsOf(inner.links, "far_knots");
    for (let link = 0; link < inner.links.source.length; link += 1) {
      const shift = ({ x, y }) => ({ x: item.dx + x, y: item.dy + y });
      const pieces = [inner.knots(link).map(shift)];
      const far = inner.farKnots(link);
      if (far.length) pieces.push(far.map(shift));
      yield { kind: picture.link_kinds[inner.links.kind[link]], width: inner.links.width[link], pieces };
    }
  }
}

/** Draws the whole picture. `view` has the arrangement, its batches, the place of the window, and what is chosen. */
function paintGraph(view) {
  const { context: c, width, height, ratio } = fitCanvas(view.canvas);
  c.clearRect(0, 0, width, height);
  if (!view.arrangement || !view.arrangement.items.length) return;
  const { scale, x, y } = view.place;
  const sight = { top: -y / scale, bottom: (height - y) / scale, left: -x / scale, right: (width - x) / scale };
  c.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * x, ratio * y);
  const dim = view.chosen.items.size > 0;
  paintFrames(c, view, sight);
  c.globalAlpha = dim ? 0.28 : 1;
  for (const band of view.batches.inSight(sight.top, sight.bottom)) paintOpen(c, band);
  for (const band of view.batches.inSight(sight.top, sight.bottom)) paintLinks(c, band, scale);
  for (const band of view.batches.inSight(sight.top, sight.bottom)) paintBoxes(c, band, scale);
  c.globalAlpha = 1;
  if (dim) paintChosen(c, view, scale);
  if (scale >= READABLE) paintTexts(c, view, sight, dim);
  if (scale >= 0.25) paintFrameNames(c, view, sight);
  paintSigns(c, view, sight, scale);
}

function paintFrames(c, view, sight) {
  const { picture } = view;
  c.lineWidth = 1;
  for (const frame of view.arrangement.frames) {
    if (frame.y > sight.bottom || frame.y + frame.h < sight.top) continue;
    c.fillStyle = color("group-fill");
    c.strokeStyle = color("line");
    if (picture.groups.count[frame.group] > 1) {
      c.beginPath();
      c.roundRect(frame.x + 4, frame.y + 4, frame.w, frame.h, 8);
      c.fill();
      c.stroke();
    }
    c.beginPath();
    c.roundRect(frame.x, frame.y, frame.w, frame.h, 8);
    c.fill();
    c.stroke();
  }
}

/** A text cut at its end where it is wider than `room`. */
function fitText(c, text, room) {
  if (c.measureText(text).width <= room) return text;
  let kept = text.slice(0, 200);
  while (kept && c.measureText(`${kept}…`).width > room) kept = kept.slice(0, -1);
  return `${kept}…`;
}

/** Names of frames, over the links that cross them. */
function paintFrameNames(c, view, sight) {
  c.font = TEXT_FONTS.strong;
  c.textAlign = "left";
  c.textBaseline = "alphabetic";
  const name = (full, x, y, room) => {
    const text = fitText(c, full, Math.max(room, 46));
    c.fillStyle = color("group-fill");
    c.fillRect(x - 2, y - 9, c.measureText(text).width + 4, 12);
    c.fillStyle = color("muted");
    c.fillText(text, x, y);
  };
  for (const frame of view.arrangement.frames) {
    if (frame.y > sight.bottom || frame.y + frame.h < sight.top) continue;
    name(`▾ ${shared(view.picture.groups.label[frame.group])}`, frame.x + 6, frame.y + 12, frame.w - 12);
  }
  for (const item of view.arrangement.items) {
    if (!item.open || item.y > sight.bottom || item.y + item.h < sight.top) continue;
    name(`▾ ${shared(item.label)}`, item.x + 7, item.y + 14, item.w - 14);
  }
}

function paintOpen(c, band) {
  const path = band.boxes.get("open");
  if (!path) return;
  c.fillStyle = color("panel");
  c.strokeStyle = color("muted");
  c.lineWidth = 1.2;
  c.fill(path);
  c.stroke(path);
}

function paintLinks(c, band, scale) {
  for (const [key, path] of band.links) {
    const [kind, width, short] = key.split("|");
    if (short && scale < 0.06) continue;
    const look = LINK_LOOKS[kind] ?? LINK_LOOKS.flow;
    c.strokeStyle = color(look.line);
    c.lineWidth = Math.max(Number(width), 0.7 / scale);
    c.setLineDash(look.dash && scale > 0.3 ? look.dash : []);
    c.stroke(path);
  }
  c.setLineDash([]);
}

function paintBoxes(c, band, scale) {
  for (const [look, path] of band.boxes) {
    if (look === "open") continue;
    const { fill: inside, line, dash } = LOOKS[look];
    c.fillStyle = color(scale < 0.12 ? line : inside);
    c.fill(path);
    if (scale < 0.12) continue;
    c.strokeStyle = color(line);
    c.lineWidth = 1.2;
    c.setLineDash(dash ?? []);
    c.stroke(path);
  }
  c.setLineDash([]);
}

/** What is selected, its producers and its users, over all else. */
function paintChosen(c, view, scale) {
  c.lineCap = "round";
  for (const link of view.chosen.links) {
    const path = new Path2D();
    for (const piece of link.pieces) curve(path, piece);
    c.strokeStyle = color(LINK_LOOKS[link.kind].line);
    c.lineWidth = Math.max(link.width + 1, 2 / scale);
    c.stroke(path);
    if (link.cut && link.pieces.length > 1) {
      c.setLineDash([5, 5]);
      c.lineWidth = Math.max(1, 1 / scale);
      c.beginPath();
      c.moveTo(link.pieces[0].at(-1).x, link.pieces[0].at(-1).y);
      c.lineTo(link.pieces[1][0].x, link.pieces[1][0].y);
      c.stroke();
      c.setLineDash([]);
    }
  }
  c.lineCap = "butt";
  for (const [item, role] of view.chosen.items) {
    const look = lookOf(view.picture, item);
    const path = new Path2D();
    outline(path, look, item);
    if (!item.open) {
      c.fillStyle = color(LOOKS[look].fill);
      c.fill(path);
    }
    c.strokeStyle = color(role === "core" ? "pick-line" : LOOKS[look].line);
    c.lineWidth = Math.max(role === "core" ? 3 : 2, (role === "core" ? 3 : 1.6) / scale);
    c.stroke(path);
  }
}

function paintTexts(c, view, sight, dim) {
  c.textAlign = "center";
  c.textBaseline = "alphabetic";
  for (const item of view.arrangement.shown) {
    if (item.y > sight.bottom || item.y + item.h < sight.top || item.x > sight.right || item.x + item.w < sight.left) {
      continue;
    }
    c.globalAlpha = dim && !view.chosen.items.has(item) ? 0.4 : 1;
    paintText(c, item, LOOKS[lookOf(view.picture, item)].shape === "pill");
    if (item.inner >= 0 && !item.open) {
      c.fillStyle = color("faint");
      c.beginPath();
      c.moveTo(item.x + item.w - 9, item.y + 2);
      c.lineTo(item.x + item.w - 3, item.y + 2);
      c.lineTo(item.x + item.w - 3, item.y + 8);
      c.fill();
    }
  }
  c.globalAlpha = 1;
}

/** Where the layout meant a box's lines to stand: the label, and under it the detail. */
function paintText(c, item, small) {
  const [label, detail] = item.text ?? [shared(item.label), shared(item.detail)];
  const middle = item.x + item.w / 2;
  if (item.open) return;
  c.fillStyle = color("ink");
  c.font = small ? TEXT_FONTS.detail : TEXT_FONTS.label;
  const lone = item.y + item.h / 2 + (small ? 3.6 : 4.3);
  c.fillText(label, middle, detail ? item.y + 12 : lone, item.w - 4);
  if (!detail) return;
  c.font = small ? TEXT_FONTS.strong : TEXT_FONTS.detail;
  c.fillStyle = color(small ? "ink" : "muted");
  c.fillText(detail, middle, item.y + 23, item.w - 4);
}

// The layout measures texts of these.
const FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif";
const TEXT_FONTS = { label: `bold 12px ${FONT}`, detail: `10px ${FONT}`, strong: `bold 10px ${FONT}` };

/** Outlines of what changed against another step. */
function paintSigns(c, view, sight, scale) {
  const { changes } = view.picture.picture;
  for (const item of view.arrangement.shown) {
    const change = changes[item.change];
    if (!item.change || change === "same" || item.y > sight.bottom || item.y + item.h < sight.top) continue;
    const path = new Path2D();
    outline(path, lookOf(view.picture, item), item, 3);
    c.strokeStyle = color(CHANGE_LINES[change]);
    c.lineWidth = Math.max(2, 1.5 / scale);
    c.setLineDash(change === "removed" ? [5, 4] : []);
    c.stroke(path);
  }
  c.setLineDash([]);
}
