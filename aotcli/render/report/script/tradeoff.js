/* The trade-off: saved bytes against what recomputing costs, a point for each plan that was computed. */

const COST_AXES = {
  recompute_flops: { name: "FLOPs run again", text: (value) => magnitudeText(value, "FLOP") },
  moved_bytes: { name: "bytes that recomputed ops move (unfused)", text: bytesText },
  peak_bytes: { name: "predicted peak (lower bound)", text: bytesText },
};

class TradeOff {
  constructor(panel) {
    const { front } = report;
    this.axis = new Set(front.recompute_flops).size > 2 ? "recompute_flops" : "moved_bytes";
    if (!front.label.length) {
      panel.append(h("p", { class: "pad muted" }, "No trade-off was computed for this report. Make it again without --no-front."));
      return;
    }
    const choice = h("select", { "aria-label": "Cost", onchange: () => {
      this.axis = choice.value;
      this.show();
    } }, Object.entries(COST_AXES).map(([value, { name }]) => h("option", { value }, name)));
    choice.value = this.axis;
    this.stage = h("div", { class: "pad" });
    this.body = h("tbody");
    const heads = ["Plan", "Saved", "Ops again", "FLOPs again", "Moved again", "Peak ≥", ""];
    panel.append(
      h("div", { class: "controls" }, h("label", {}, "Cost ", choice), h("span", { class: "count" },
        `${plural(front.label.length, "plan")}, not the whole front`)),
      h("div", { class: "scroll" }, this.stage, h("table", {}, h("thead", {}, h("tr", {}, heads.map((title, place) =>
        h("th", { scope: "col", class: place && place < 6 ? "right" : "" }, h("span", {}, title))))), this.body)));
    fill(this.body, front.label.map((label, place) => h("tr", { class: front.chosen[place] ? "picked" : "" },
      h("td", {}, label), h("td", { class: "right" }, bytesText(front.saved_bytes[place])),
      h("td", { class: "right" }, countText(front.recomputed_ops[place])),
      h("td", { class: "right" }, magnitudeText(front.recompute_flops[place])),
      h("td", { class: "right" }, bytesText(front.moved_bytes[place])),
      h("td", { class: "right" }, bytesText(front.peak_bytes[place])),
      h("td", {}, front.chosen[place] ? "this report" : copyButton(() => front.arguments[place], "Copy command")))));
    this.show();
  }

  show() {
    const { front } = report;
    const costs = front[this.axis];
    const frame = { left: 76, right: 560, top: 22, bottom: 250 };
    const most = Math.max(1, ...front.saved_bytes);
    const dearest = Math.max(1, ...costs);
    const x = (cost) => frame.left + (cost / dearest) * (frame.right - frame.left);
    const y = (saved) => frame.bottom - (saved / most) * (frame.bottom - frame.top);
    const drawing = svg("svg", { id: "tradeoff-chart", viewBox: "0 0 640 290", role: "img", "aria-label": "Saved bytes against cost" });
    for (const tick of byteTicks(most, 5)) {
      drawing.append(svg("line", { class: "grid", x1: frame.left, x2: frame.right, y1: y(tick), y2: y(tick) }),
        svg("text", { x: frame.left - 8, y: y(tick) + 4, "text-anchor": "end" }, tickText(tick)));
    }
    drawing.append(svg("line", { class: "axis", x1: frame.left, x2: frame.right, y1: frame.bottom, y2: frame.bottom }),
      svg("text", { x: frame.left, y: frame.bottom + 18 }, "0"),
      svg("text", { x: frame.right, y: frame.bottom + 18, "text-anchor": "end" }, COST_AXES[this.axis].text(dearest)),
      svg("text", { x: (frame.left + frame.right) / 2, y: frame.bottom + 34, "text-anchor": "middle" }, COST_AXES[this.axis].name),
      svg("text", { x: frame.left - 8, y: 12, "text-anchor": "end" }, "saved"));
    const taken = [];
    front.label.forEach((label, place) => {
      const at = { x: x(costs[place]), y: y(front.saved_bytes[place]) };
      const right = at.x < 430;
      let textY = at.y + 4;
      while (taken.some((other) => Math.abs(other.y - textY) < 14 && Math.abs(other.x - at.x) < 150)) textY += 14;
      taken.push({ x: at.x, y: textY });
      const dot = svg("circle", { cx: at.x, cy: at.y, r: front.chosen[place] ? 7 : 5 });
      dot.style.fill = front.chosen[place] ? "var(--accent)" : "var(--faint)";
      const title = svg("title", {}, `${label}: saves ${bytesText(front.saved_bytes[place])}, ${COST_AXES[this.axis].text(costs[place])}`);
      drawing.append(svg("g", { class: "point" }, title, dot,
        svg("text", { x: right ? at.x + 11 : at.x - 11, y: textY, "text-anchor": right ? "start" : "end" }, label)));
    });
    fill(this.stage, drawing);
  }
}
