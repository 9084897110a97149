/* Painting of the memory chart. */

function paintMemory(chart) {
  const { context: c, width, height } = fitCanvas(chart.canvas);
  c.clearRect(0, 0, width, height);
  c.font = `11px ${getComputedStyle(document.body).fontFamily}`;
  if (!chart.steps) {
    c.fillStyle = color("muted");
    c.textAlign = "center";
    c.fillText("No op runs in this region.", width / 2, height / 2);
    return;
  }
  const frame = chart.frame();
  const most = Math.max(chart.memory.peak_bytes, 1);
  const y = (nbytes) => frame.bottom - (nbytes / most) * (frame.bottom - frame.top);
  paintScale(c, frame, most, y);
  paintAreas(c, chart, frame, y);
  paintHalves(c, chart, frame);
  paintPeak(c, chart, frame, y);
  paintCursors(c, chart, frame, y);
}

function paintScale(c, frame, most, y) {
  c.lineWidth = 1;
  c.textAlign = "right";
  c.textBaseline = "middle";
  for (const tick of byteTicks(most, 5)) {
    const at = Math.round(y(tick)) + 0.5;
    c.strokeStyle = color("grid");
    c.beginPath();
    c.moveTo(frame.left, at);
    c.lineTo(frame.right, at);
    c.stroke();
    c.fillStyle = color("muted");
    c.fillText(tickText(tick), frame.left - 7, at);
  }
}

/** One column of pixels shows the step of its range at which most is live: no peak is lost between pixels. */
function columnsOf(chart, frame) {
  const pixels = Math.max(1, Math.round(frame.right - frame.left));
  const { live_bytes: live } = chart.memory;
  if (chart.steps <= pixels) return Array.from(live, (_, step) => step);
  const chosen = [];
  for (let pixel = 0; pixel < pixels; pixel += 1) {
    const start = Math.floor((pixel * chart.steps) / pixels);
    const end = Math.max(start + 1, Math.floor(((pixel + 1) * chart.steps) / pixels));
    let best = start;
    for (let step = start; step < end; step += 1) if (live[step] > live[best]) best = step;
    chosen.push(best);
  }
  return chosen;
}

function paintAreas(c, chart, frame, y) {
  const steps = columnsOf(chart, frame);
  const wide = (frame.right - frame.left) / steps.length;
  const base = new Float64Array(steps.length);
  chart.memory.uses.forEach((use, place) => {
    const layer = chart.layers[place];
    const top = base.map((nbytes, column) => nbytes + layer[steps[column]]);
    if (top.every((nbytes, column) => nbytes === base[column])) return;
    c.beginPath();
    c.moveTo(frame.left, y(top[0]));
    for (let column = 0; column < steps.length; column += 1) {
      c.lineTo(frame.left + column * wide, y(top[column]));
      c.lineTo(frame.left + (column + 1) * wide, y(top[column]));
    }
    for (let column = steps.length - 1; column >= 0; column -= 1) {
      c.lineTo(frame.left + (column + 1) * wide, y(base[column]));
      c.lineTo(frame.left + column * wide, y(base[column]));
    }
    c.closePath();
    c.fillStyle = color(USE_STYLES[use].color);
    c.fill();
    base.set(top);
  });
}

function paintHalves(c, chart, frame) {
  const { forward_steps: forward } = chart.memory;
  c.textBaseline = "alphabetic";
  c.fillStyle = color("muted");
  const at = frame.left + (forward / chart.steps) * (frame.right - frame.left);
  if (forward > 0 && forward < chart.steps) {
    c.strokeStyle = color("ink");
    c.setLineDash([2, 3]);
    c.beginPath();
    c.moveTo(Math.round(at) + 0.5, frame.top - 6);
    c.lineTo(Math.round(at) + 0.5, frame.bottom);
    c.stroke();
    c.setLineDash([]);
  }
  c.textAlign = "center";
  if (forward > 0 && at - frame.left > 60) c.fillText("forward", (frame.left + at) / 2, frame.bottom + 14);
  if (forward < chart.steps && frame.right - at > 60) c.fillText("backward", (at + frame.right) / 2, frame.bottom + 14);
}

function paintPeak(c, chart, frame, y) {
  const { peak_at: step, peak_bytes: nbytes } = chart.memory;
  const x = chart.x(step);
  c.strokeStyle = c.fillStyle = color("ink");
  c.beginPath();
  c.arc(x, y(nbytes), 4, 0, 2 * Math.PI);
  c.fill();
  const said = `peak ${bytesText(nbytes)}`;
  const room = c.measureText(said).width;
  c.textAlign = "left";
  c.font = `600 ${c.font}`;
  c.fillText(said, Math.min(Math.max(frame.left, x - room / 2), frame.right - room - 6), y(nbytes) - 9);
}

function paintCursors(c, chart, frame, y) {
  const line = (step, stroke, dash) => {
    c.strokeStyle = stroke;
    c.setLineDash(dash);
    c.beginPath();
    c.moveTo(chart.x(step), frame.top - 4);
    c.lineTo(chart.x(step), frame.bottom);
    c.stroke();
    c.setLineDash([]);
  };
  if (state.node >= 0) paintLife(c, chart, frame, y);
  if (state.step >= 0) line(state.step, color("pick-line"), []);
  if (chart.hover >= 0) line(chart.hover, color("ink"), [3, 3]);
}

/** Bars on the axis over the steps at which the selected node's memory lives. */
function paintLife(c, chart, frame) {
  const { memory } = chart;
  c.fillStyle = color("pick-line");
  for (let i = 0; i < memory.node.length; i += 1) {
    if (memory.node[i] !== state.node) continue;
    const from = chart.x(memory.born[i] - 0.5);
    c.fillRect(from, frame.bottom, Math.max(3, chart.x(memory.born[i] + memory.life[i] + 0.5) - from), 4);
  }
  memory.steps.forEach((node, step) => {
    if (node === state.node) c.fillRect(chart.x(step) - 1, frame.bottom - 4, 2, 10);
  });
}
