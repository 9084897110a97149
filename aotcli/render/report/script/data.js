/* The report's data, read once, with the lookups that views share. See aotcli/render/report/document.py. */

// Bits of a node's flags, as in nodes.py.
const FORWARD = 1;
const BACKWARD = 2;
const SAVED = 4;
const KEPT = 8;
const VIEW = 16;
const PLACEHOLDER = 32;
const RANDOM = 64;
const RESULT = 128;
const GRADIENT = 256;
const UNUSED = 512;

const report = JSON.parse(byId("data").textContent);

/** A text of the shared table; -1 stands for none. */
const shared = (number) => (number < 0 ? "" : report.strings[number]);

/** Starts of the parts of a flat list, from their lengths; one more than there are parts. */
function startsOf(counts) {
  const starts = new Int32Array(counts.length + 1);
  for (let i = 0; i < counts.length; i += 1) starts[i + 1] = starts[i] + counts[i];
  return starts;
}

/** One captured region: its nodes by number, what each reads and who reads it. */
class Region {
  constructor(data, index) {
    this.data = data;
    this.index = index;
    this.nodes = data.nodes;
    this.size = data.nodes.name.length;
    this.inputStarts = startsOf(data.nodes.input_counts);
    this.userStarts = startsOf(data.saved.values.user_counts);
    this.savedByNode = new Map(data.saved.values.node.map((node, place) => [node, place]));
    this.nodeById = null;
    this.users = null;
    this.haystack = null;
  }

  name(node) {
    return this.nodes.name[node];
  }

  label(node) {
    return shared(this.nodes.label[node]);
  }

  module(node) {
    return shared(this.nodes.module[node]);
  }

  flags(node) {
    return this.nodes.flags[node];
  }

  /** Whether a node runs in both halves. */
  isRecomputed(node) {
    return (this.flags(node) & (FORWARD | BACKWARD)) === (FORWARD | BACKWARD);
  }

  /** The node with a canonical id, or -1. */
  find(id) {
    this.nodeById ??= new Map(this.nodes.id.map((each, node) => [each, node]));
    return this.nodeById.get(id) ?? -1;
  }

  inputsOf(node) {
    const found = [];
    for (let i = this.inputStarts[node]; i < this.inputStarts[node + 1]; i += 1) {
      found.push(node - this.nodes.inputs[i]);
    }
    return found;
  }

  usersOf(node) {
    this.users ??= this.#allUsers();
    const { starts, flat } = this.users;
    return Array.from(flat.subarray(starts[node], starts[node + 1]));
  }

  #allUsers() {
    const counts = new Int32Array(this.size);
    const { inputs } = this.nodes;
    for (let node = 0; node < this.size; node += 1) {
      for (let i = this.inputStarts[node]; i < this.inputStarts[node + 1]; i += 1) counts[node - inputs[i]] += 1;
    }
    const starts = startsOf(counts);
    const flat = new Int32Array(inputs.length);
    const next = starts.slice();
    for (let node = 0; node < this.size; node += 1) {
      for (let i = this.inputStarts[node]; i < this.inputStarts[node + 1]; i += 1)
        flat[next[node - inputs[i]]++] = node;
    }
    return { starts, flat };
  }

  /** Saved values are listed by number; the nodes that read one in the backward. */
  backwardUsers(place) {
    return this.data.saved.values.users.slice(this.userStarts[place], this.userStarts[place + 1]);
  }

  /** What a node is computed from, with views passed through. */
  producers(node) {
    return this.#through(node, (each) => this.inputsOf(each));
  }

  /** Who reads a value, with views passed through. */
  readers(node) {
    return this.#through(node, (each) => this.usersOf(each));
  }

  #through(node, next) {
    const found = new Set();
    const seen = new Set([node]);
    const open = [...next(node)];
    while (open.length) {
      const each = open.pop();
      if (seen.has(each)) continue;
      seen.add(each);
      if (this.flags(each) & VIEW && next(each).length) open.push(...next(each));
      else found.add(each);
    }
    return [...found].sort((a, b) => a - b);
  }

  /** One lower-case text for each node, in which a search looks. */
  haystacks() {
    const { nodes } = this;
    this.haystack ??= nodes.name.map((name, node) =>
      [
        name,
        shared(nodes.label[node]),
        shared(nodes.target[node]),
        shared(nodes.module[node]),
        shared(nodes.line[node]),
        shared(nodes.shape[node]),
      ]
        .join("\n")
        .toLowerCase(),
    );
    return this.haystack;
  }
}

const regions = report.regions.map((data, index) => new Region(data, index));
