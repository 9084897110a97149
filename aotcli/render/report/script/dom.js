/* Elements without a framework. Texts become text nodes and never markup: a module called "<script>" is shown so. */

/** An element: `props` are properties, `class`, `data-…`, `aria-…` or `on…`; children are elements or texts. */
function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "class") element.className = value;
    else if (key === "style") Object.assign(element.style, value);
    else if (key.includes("-") || key === "role" || key === "for") element.setAttribute(key, value);
    else element[key] = value;
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

const byId = (id) => document.getElementById(id);

function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
}

/** A shape of an SVG drawing. */
function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

/** Runs a function once, before the next repaint, however often it is asked for. */
function onNextFrame(run) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      run();
    });
  };
}

/** A button that copies a text; says so for a moment. */
function copyButton(textToCopy, label = "Copy") {
  const button = h("button", { class: "copy", type: "button", title: "Copy to the clipboard" }, label);
  button.addEventListener("click", async () => {
    const said = (await copyText(textToCopy())) ? "Copied" : "Press Ctrl+C";
    button.textContent = said;
    announce(said);
    setTimeout(() => (button.textContent = label), 1500);
  });
  return button;
}

/** From a file the clipboard may be closed to scripts: then a selected text field stands in for it. */
async function copyText(textToCopy) {
  try {
    await navigator.clipboard.writeText(textToCopy);
    return true;
  } catch {
    const field = h("textarea", { value: textToCopy, class: "offscreen" });
    document.body.append(field);
    field.select();
    const copied = document.execCommand("copy");
    field.remove();
    return copied;
  }
}

/** Says something to screen readers. */
function announce(message) {
  byId("announcer").textContent = message;
}

const cssColors = new Map();

/** A colour of the style sheet in the theme that is on, for canvases. */
function color(name) {
  if (!cssColors.has(name)) {
    cssColors.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  }
  return cssColors.get(name);
}

let sharpness = 1; // more than the screen shows, for paper

/** Makes a canvas as sharp as the screen; gives its context and its size in CSS pixels. */
function fitCanvas(canvas) {
  const ratio = (window.devicePixelRatio || 1) * sharpness;
  const { clientWidth: width, clientHeight: height } = canvas;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { context, width, height, ratio };
}
