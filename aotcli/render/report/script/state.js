/* What is chosen, who wants to know, and the address that brings it back. */

const state = {
  region: 0,
  node: -1, // the selected node, -1 for none
  marked: [], // further nodes that are marked: a folded row's, a module's, a search's
  step: -1, // the step of the memory timeline, -1 for the peak
  tab: "saved",
};

const listeners = { region: [], select: [], step: [], tab: [], theme: [], mark: [] };

/** Calls `run` whenever `topic` changes: region, select, mark, step, tab or theme. */
function when(topic, run) {
  listeners[topic].push(run);
}

function tell(topic, detail) {
  for (const run of listeners[topic]) run(detail);
}

const currentRegion = () => regions[state.region];

/** Selects a node of the region that is shown; `from` names the view that it was chosen in. */
function select(node, from = "") {
  state.node = node;
  state.marked = [];
  tell("select", { from });
  writeAddress();
  if (node >= 0) announce(`${currentRegion().label(node)}, ${currentRegion().name(node)} selected`);
}

/** Marks several nodes, the first of which is selected. */
function mark(nodes, from = "") {
  state.node = nodes.length === 1 ? nodes[0] : -1;
  state.marked = nodes.length === 1 ? [] : nodes;
  tell("select", { from });
  writeAddress();
}

function showRegion(index) {
  if (index === state.region || !regions[index]) return;
  Object.assign(state, { region: index, node: -1, marked: [], step: -1 });
  tell("region");
  tell("select", { from: "region" });
  writeAddress();
}

function showTab(tab) {
  if (!byId(`tab-${tab}`)) return;
  state.tab = tab;
  tell("tab");
  writeAddress();
}

function showStep(step) {
  state.step = step;
  tell("step");
}

/** `#region=0&node=123&tab=saved`: nodes by their canonical position, which outlives names. */
function addressOf(node = state.node) {
  const parts = [];
  if (regions.length > 1) parts.push(`region=${state.region}`);
  if (node >= 0) parts.push(`node=${currentRegion().nodes.id[node]}`);
  if (state.tab !== "saved") parts.push(`tab=${state.tab}`);
  return parts.length ? `#${parts.join("&")}` : "";
}

function writeAddress() {
  const address = addressOf();
  if (address === window.location.hash) return;
  history.replaceState(null, "", address || window.location.pathname + window.location.search);
}

/** Shows what the address asks for; what it names and this report does not have is said. */
function readAddress() {
  const wanted = new URLSearchParams(window.location.hash.slice(1));
  if (wanted.has("region")) {
    const index = Number(wanted.get("region"));
    if (regions[index]) showRegion(index);
    else say(`This report has no region ${wanted.get("region")}.`);
  }
  if (wanted.has("tab")) showTab(wanted.get("tab"));
  if (!wanted.has("node")) return;
  const node = currentRegion().find(Number(wanted.get("node")));
  if (node < 0) say(`This report has no node ${wanted.get("node")}: the link may be to another one.`);
  else select(node, "address");
}

let sayTimer = 0;

/** A message at the foot of the window that goes away by itself. */
function say(message) {
  const box = byId("message");
  box.textContent = message;
  box.hidden = false;
  announce(message);
  clearTimeout(sayTimer);
  sayTimer = setTimeout(() => (box.hidden = true), 5000);
}
