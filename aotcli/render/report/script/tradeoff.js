/* The trade-off: saved bytes against what recomputing costs. The line is a proven bound; the points are plans. */

const COST_AXES = {
  cost: { name: "time to run again, estimated", text: (value) => costText(value) },
  recompute_flops: { name: "FLOPs run again", text: (value) => magnitudeText(value, "FLOP") },
  moved_bytes: { name: "bytes that recomputed ops move, unfused", text: (value) => bytesText(value) },
  peak_bytes: { name: "predicted peak, a lower bound", text: (value) => bytesText(value) },
};
const CHART = { left: 78, right: 616, top: 20, bottom: 236, width: 640, height: 282 };

/** A cost in the trade-off's unit: picoseconds as people read times, or FLOPs. */
function costText(cost) {
  if (report.trade_off.unit !== "ps") return magnitudeText(cost, "FLOP");
  if (cost < 1000) return cost ? "<1 ns" : "0 s";
  const units = [
    [1e12, "s"],
    [1e9, "ms"],
    [1e6, "µs"],
    [1e3, "ns"],
  ];
  const [size, unit] = units.find(([each]) => cost >= 0.9995 * each) ?? [1e3, "ns"];
  return `${(cost / size).toPrecision(3)} ${unit}`;
}

class TradeOff {
  constructor(panel) {
    const found = report.trade_off;
    if (!found) {
      const why = regions.some((region) => region.data.has_backward)
        ? "No trade-off was computed for this report."
        : "There is no backward, so there is nothing to trade.";
      panel.append(h("p", { class: "pad muted" }, why));
      return;
    }
    this.axis = "cost";
    const choice = h(
      "select",
      {
        "aria-label": "Cost",
        onchange: () => {
          this.axis = choice.value;
          this.show();
        },
      },
      Object.entries(COST_AXES).map(([value, { name }]) => h("option", { value }, name)),
    );
    this.stage = h("div", { class: "pad" });
    this.picked = h(
      "p",
      { class: "pad", id: "tradeoff-pick" },
      h(
        "span",
        { class: "muted" },
        "Click a point: what it saves is marked in the graph, and the command that gives it is shown.",
      ),
    );
    panel.append(
      h("div", { class: "controls" }, h("label", {}, "Cost ", choice), h("span", { class: "count" }, found.estimate)),
      h(
        "div",
        { class: "scroll" },
        this.stage,
        this.picked,
        this.table(found),
        h(
          "p",
          { class: "pad muted" },
          "No plan lies below the line: it joins the corners of the front, found by minimum cuts. " +
            "Costs and peaks are estimates.",
        ),
      ),
    );
    this.show();
  }

  /** Plans of strategies and corners of the front, from the most bytes to the fewest. */
  table({ points, corners }) {
    const heads = ["Plan", "Saved", "Time again", "Ops again", "FLOPs again", "Moved again", "Peak ≥"];
    const rows = [
      ...points.label.map((_, place) => [points.saved_bytes[place], this.pointRow(points, place)]),
      ...corners.cost.flatMap((_, place) =>
        // Corners that nobody could tell apart are one row.
        corners.arguments[place] === corners.arguments[place + 1]
          ? []
          : [[corners.saved_bytes[place], this.cornerRow(corners, place)]],
      ),
    ];
    rows.sort((a, b) => b[0] - a[0]);
    const cells = heads.map((title, place) =>
      h("th", { scope: "col", class: place ? "right" : "" }, h("span", {}, title)),
    );
    return h(
      "table",
      {},
      h("thead", {}, h("tr", {}, cells)),
      h(
        "tbody",
        {},
        rows.map(([, row]) => row),
      ),
    );
  }

  row(label, texts, pick, chosen = false) {
    const cells = texts.map((text) => h("td", { class: "right" }, text));
    const pressed = (event) => event.key === "Enter" && pick();
    return h(
      "tr",
      { class: chosen ? "mine" : "", tabIndex: 0, onclick: pick, onkeydown: pressed },
      h("td", {}, label),
      cells,
    );
  }

  pointRow(points, place) {
    const texts = [
      bytesText(points.saved_bytes[place]),
      costText(points.cost[place]),
      countText(points.recomputed_ops[place]),
      magnitudeText(points.recompute_flops[place]),
      bytesText(points.moved_bytes[place]),
      bytesText(points.peak_bytes[place]),
    ];
    const mine = points.chosen[place];
    const label = [h("strong", {}, points.label[place]), mine ? h("span", { class: "muted" }, " (this report)") : null];
    return this.row(label, texts, () => this.pickPoint(place), mine);
  }

  cornerRow(corners, place) {
    const texts = [bytesText(corners.saved_bytes[place]), costText(corners.cost[place]), "", "", "", ""];
    const words = corners.arguments[place].replace("--strategy ", "");
    return this.row(words, texts, () => this.pick(corners, place, "This corner of the front"));
  }

  pickPoint(place) {
    const { points } = report.trade_off;
    this.pick(points, place, points.label[place]);
  }

  /** Shows what a plan saves in the graph, how that differs from this report's, and the command that gives it. */
  pick(table, place, label) {
    const saved = table.saved.map((region) => listsOf(region, "nodes")(place));
    const here = regions.map((region) => {
      const { maker, category } = region.data.saved.values;
      return new Set(maker.filter((_, value) => category[value] === "activation"));
    });
    const both = saved.flatMap((nodes, region) => nodes.filter((node) => here[region].has(node))).length;
    const fewer = here.reduce((sum, nodes) => sum + nodes.size, 0) - both;
    const more = saved.reduce((sum, nodes) => sum + nodes.length, 0) - both;
    const command = `${report.verdict.partition} ${table.arguments[place]}`;
    const difference =
      fewer || more ? `. Against this report, ${plural(fewer, "tensor")} fewer and ${countText(more)} others` : "";
    fill(
      this.picked,
      h("strong", {}, label),
      ` saves ${bytesText(table.saved_bytes[place])}, ${costText(table.cost[place])} to run again${difference}. `,
      h("code", {}, command),
      " ",
      copyButton(() => command),
    );
    mark(saved[state.region], "tradeoff");
  }

  show() {
    const { points, corners } = report.trade_off;
    const costs = points[this.axis];
    const front = this.axis === "cost" ? corners.saved_bytes.map((nbytes, place) => [nbytes, corners.cost[place]]) : [];
    const most = Math.max(1, ...points.saved_bytes, ...front.map(([nbytes]) => nbytes));
    const dearest = Math.max(1, ...costs, ...front.map(([, cost]) => cost));
    const x = (cost) => CHART.left + (cost / dearest) * (CHART.right - CHART.left);
    const y = (saved) => CHART.bottom - (saved / most) * (CHART.bottom - CHART.top);
    const drawing = svg("svg", {
      id: "tradeoff-chart",
      viewBox: `0 0 ${CHART.width} ${CHART.height}`,
      role: "img",
      "aria-label": "Saved bytes against cost",
    });
    this.axes(drawing, y, most, dearest);
    if (front.length > 1) this.front(drawing, front, x, y);
    this.points(drawing, points, costs, x, y);
    fill(this.stage, drawing);
  }

  axes(drawing, y, most, dearest) {
    const { left, right, bottom } = CHART;
    const { name, text } = COST_AXES[this.axis];
    for (const tick of byteTicks(most, 5)) {
      drawing.append(
        svg("line", { class: "grid", x1: left, x2: right, y1: y(tick), y2: y(tick) }),
        svg("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, tickText(tick)),
      );
    }
    drawing.append(
      svg("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }),
      svg("text", { x: left, y: bottom + 18 }, "0"),
      svg("text", { x: right, y: bottom + 18, "text-anchor": "end" }, text(dearest)),
      svg("text", { x: (left + right) / 2, y: bottom + 36, "text-anchor": "middle" }, name),
      svg("text", { x: left - 8, y: 10, "text-anchor": "end" }, "saved"),
    );
  }

  front(drawing, front, x, y) {
    const line = front.map(([nbytes, cost]) => `${x(cost)},${y(nbytes)}`).join(" ");
    const edge = `${x(front[0][1])},${CHART.bottom} ${line} ${x(front.at(-1)[1])},${CHART.bottom}`;
    drawing.append(svg("polygon", { class: "below", points: edge }), svg("polyline", { class: "front", points: line }));
    front.forEach(([nbytes, cost], place) => {
      const corner = svg("circle", {
        class: "corner",
        cx: x(cost),
        cy: y(nbytes),
        r: 3.5,
        onclick: () => this.pick(report.trade_off.corners, place, "This corner of the front"),
      });
      corner.append(svg("title", {}, `${bytesText(nbytes)} saved, ${costText(cost)} to run again`));
      drawing.append(corner);
    });
  }

  points(drawing, points, costs, x, y) {
    const taken = [];
    points.label.forEach((label, place) => {
      const at = { x: x(costs[place]), y: y(points.saved_bytes[place]) };
      const right = at.x < 430;
      let textY = Math.min(at.y - 8, CHART.bottom - 6);
      while (taken.some((other) => Math.abs(other.y - textY) < 14 && Math.abs(other.x - at.x) < 150)) textY += 15;
      taken.push({ x: at.x, y: textY });
      const dot = svg("circle", {
        cx: at.x,
        cy: at.y,
        r: points.chosen[place] ? 7 : 5,
        class: points.chosen[place] ? "mine" : "plan",
      });
      drawing.append(
        svg(
          "g",
          { class: "point", onclick: () => this.pickPoint(place) },
          svg(
            "title",
            {},
            `${label}: saves ${bytesText(points.saved_bytes[place])}, ${COST_AXES[this.axis].text(costs[place])}`,
          ),
          dot,
          svg("text", { x: right ? at.x + 10 : at.x - 10, y: textY, "text-anchor": right ? "start" : "end" }, label),
        ),
      );
    });
  }
}
