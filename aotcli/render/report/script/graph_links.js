/* Links and frames of an arrangement. */

/** Every link that shows, as points with what it joins; links that have become the same are one. */
function arrangeLinks(arrangement) {
  const { picture } = arrangement;
  const { source, target, nbytes, width, values, change } = picture.links;
  const still = arrangement.open.size === 0 && arrangement.closed.size === 0;
  const merged = new Map();
  const found = [];
  for (let link = 0; link < source.length; link += 1) {
    const from = arrangement.itemOfBox[source[link]];
    const to = arrangement.itemOfBox[target[link]];
    if (!from || !to || from === to) continue;
    const shown = {
      link,
      from,
      to,
      kind: picture.linkKind(link),
      nbytes: nbytes[link],
      width: width[link],
      values: values[link],
      change: change[link],
      pieces: [],
    };
    if (from.group >= 0 || to.group >= 0) {
      const key = `${endName(from)}>${endName(to)}`;
      const same = merged.get(key);
      if (same) {
        same.nbytes += shown.nbytes;
        same.values += shown.values;
        same.width = Math.max(same.width, shown.width);
        continue;
      }
      merged.set(key, shown);
    }
    const near = picture.knots(link);
    const far = picture.farKnots(link);
    if (still) shown.pieces = far.length ? [near, far] : [near];
    else shown.pieces = movedPieces(arrangement, shown, near, far);
    shown.cut = far.length > 0;
    found.push(shown);
  }
  return found;
}

/** What tells an end of a link from others. */
function endName(item) {
  return item.box >= 0 ? `${item.box}` : `group ${item.group} ${item.kind}`;
}

/** The pieces of a link after boxes have moved, and how it goes on inside open boxes. */
function movedPieces(arrangement, link, near, far) {
  const moved = near.map((point) => arrangement.move(point));
  const tail = far.map((point) => arrangement.move(point));
  const last = tail.length ? tail : moved;
  const start = attach(link.from, moved[0], near[0], arrangement);
  const end = attach(link.to, last[last.length - 1], (far.length ? far : near).at(-1), arrangement);
  moved[0] = start;
  last[last.length - 1] = end;
  const pieces = tail.length ? [moved, tail] : [between(moved)];
  if (link.from.open) pieces.push(...inside(link.from, arrangement.picture.sourceEnds(link.link), start));
  if (link.to.open) pieces.push(...inside(link.to, arrangement.picture.targetEnds(link.link), end));
  return pieces;
}

/** A link's end on the edge of an item: the edge that it was on. */
function attach(item, point, before, arrangement) {
  const row = arrangement.rows[item.row];
  const middle =
    item.box >= 0
      ? arrangement.picture.boxes.y[item.box] + arrangement.picture.boxes.h[item.box] / 2
      : (row.top + row.bottom) / 2;
  const margin = Math.min(8, item.w / 4);
  return {
    x: Math.max(item.x + margin, Math.min(item.x + item.w - margin, point.x)),
    y: before.y > middle ? item.y + item.h : item.y,
  };
}

/** Points without those that do not lie between the ends: rows that were passed may have closed up. */
function between(points) {
  const first = points[0];
  const last = points[points.length - 1];
  const low = Math.min(first.y, last.y);
  const high = Math.max(first.y, last.y);
  const sign = Math.sign(last.y - first.y) || 1;
  const kept = [first];
  for (const point of points.slice(1, -1)) {
    const after = (point.y - kept[kept.length - 1].y) * sign >= 0;
    if (point.y > low && point.y < high && after) kept.push(point);
  }
  kept.push(last);
  return kept;
}

/** From the edge of an open box to the boxes inside that a link is meant for. */
function inside(item, leaves, port) {
  const atBottom = port.y > item.y + item.h / 2;
  return leaves
    .map((leaf) => {
      const box = item.leaves[leaf];
      if (!box) return [];
      const end = { x: box.x + box.w / 2, y: atBottom ? box.y + box.h : box.y };
      return [port, end];
    })
    .filter((piece) => piece.length);
}

/** Frames around what is left of open modules. A frame that would hold a box of others is left out. */
function arrangeFrames(arrangement) {
  const { picture } = arrangement;
  const { frames } = picture.view;
  if (!arrangement.open.size && !arrangement.closed.size) {
    return frames.group.map((group, place) => ({
      group,
      x: frames.x[place],
      y: frames.y[place],
      w: frames.w[place],
      h: frames.h[place],
    }));
  }
  const found = [];
  frames.group.forEach((group, place) => {
    const held = arrangement.items.filter((item) => {
      const own = item.box >= 0 ? picture.boxes.group[item.box] : picture.groups.parent[item.group];
      return own >= 0 && picture.chains[own].includes(group);
    });
    if (!held.length) return;
    const margins = frameMargins(picture, place);
    const left = Math.min(...held.map((item) => item.x)) - margins.side;
    const right = Math.max(...held.map((item) => item.x + item.w)) + margins.side;
    const top = Math.min(...held.map((item) => item.y)) - margins.top;
    const bottom = Math.max(...held.map((item) => item.y + item.h)) + margins.side;
    const inside = new Set(held);
    const foreign = arrangement.items.some(
      (item) =>
        !inside.has(item) && item.x < right && item.x + item.w > left && item.y < bottom && item.y + item.h > top,
    );
    if (!foreign) found.push({ group, x: left, y: top, w: right - left, h: bottom - top });
  });
  return found;
}

/** How far a frame of the base stands off from its boxes. */
function frameMargins(picture, place) {
  const { frames, boxes } = picture.view;
  picture.margins ??= new Map();
  if (!picture.margins.has(place)) {
    let left = Infinity;
    let top = Infinity;
    for (let box = 0; box < picture.size; box += 1) {
      const group = boxes.group[box];
      if (group < 0 || !picture.chains[group].includes(frames.group[place])) continue;
      left = Math.min(left, boxes.x[box]);
      top = Math.min(top, boxes.y[box]);
    }
    picture.margins.set(place, { side: left - frames.x[place], top: top - frames.y[place] });
  }
  return picture.margins.get(place);
}
