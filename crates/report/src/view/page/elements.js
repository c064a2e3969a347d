// Making elements. Text only ever goes in as text: names in a snapshot are not ours, so nothing is parsed as HTML.

const byId = (id) => document.getElementById(id);

// make("button", { class: "own", onclick: f }, "text", child, ...)
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== null));
  return element;
}

function dot(colour) {
  return make("span", { class: "dot", style: { background: colour }, "aria-hidden": "true" });
}

// A row of tabs with the keys that such rows have. `choose` is called with the name of the chosen one.
function makeTabs(container, names, choose) {
  const buttons = names.map(([name, label]) =>
    make("button", { type: "button", role: "tab", "data-name": name, onclick: () => choose(name) }, label),
  );
  container.replaceChildren(...buttons);
  container.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = buttons.findIndex((button) => button.getAttribute("aria-selected") === "true");
    const next = buttons[(at + step + buttons.length) % buttons.length];
    choose(next.dataset.name);
    next.focus();
  });
  return (chosen) => {
    for (const button of buttons) {
      const isChosen = button.dataset.name === chosen;
      button.setAttribute("aria-selected", String(isChosen));
      button.tabIndex = isChosen ? 0 : -1;
    }
  };
}

// Fits a canvas to its place and the screen's pixels. Returns its context in CSS pixels, cleared, and its size.
function openCanvas(canvas) {
  const { width, height } = canvas.getBoundingClientRect();
  const scale = window.devicePixelRatio || 1;
  const [across, up] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== across || canvas.height !== up) {
    canvas.width = across;
    canvas.height = up;
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}
