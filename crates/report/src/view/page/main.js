// Puts the page together. Read from `start` on.

async function start() {
  const meta = JSON.parse(byId("meta").textContent);
  const columns = meta.served
    ? unpackColumns(await (await fetch("tables")).arrayBuffer())
    : await embeddedColumns(byId("columns").textContent);
  byId("columns").remove();
  byId("title").textContent = meta.title;
  if (meta.devices.length === 0) {
    byId("subtitle").textContent = "The snapshot has no segments and no events.";
    return;
  }
  const tables = makeTables(meta, columns);
  const answers = meta.served ? remoteAnswers() : localAnswers(meta, columns, tables);
  const store = makeState(meta);
  readColours(meta);
  const picture = makePicture(store, answers, tables, () => showStatus(store, tables, picture));
  const overview = makeOverview(store, answers);
  const panels = makePanels(store, answers, tables);
  const markView = makeTabs(byId("views"), [["kind", "By kind"], ["site", "By line"], ["single", "Allocations"]],
    (view) => store.change({ view }));

  const refresh = (state, changed) => {
    markView(state.view);
    const has = (...names) => names.some((name) => name in changed);
    if (has("device")) showFigures(store, tables);
    if (has("device", "view")) showLegend(store, tables);
    if (has("device", "finding")) showFindings(store, tables);
    if (has("device", "site")) showLines(store, tables);
    if (has("device", "site", "view")) showFilter(store, tables);
    if (!has("hover")) showStatus(store, tables, picture);
    showTip(store, tables, picture);
  };
  store.listen(refresh);
  showDevices(store);
  listenToGestures(store, picture, (point) => choose(store, picture, panels, answers, point));
  listenToButtons(store, picture, tables);
  store.openDevice(0);
  followTheme(meta, () => {
    picture.redraw();
    overview.draw();
    panels.show();
    showLegend(store, tables);
  });
  // For tests and for the curious: what is shown, without reading pixels.
  window.plimsoll = { state: store.state, store, picture, answers, tables, panels };
}

// A click, or Enter without a place: then the next allocation that is alive here, the largest first.
async function choose(store, picture, panels, answers, point) {
  const { state } = store;
  if (point) {
    const shape = picture.shapeAt(point.left, point.top);
    const here = Math.round(Math.min(Math.max(picture.positionAt(point.left), 0), store.device().last));
    const at = picture.columnAt(here)?.at ?? here;
    store.change(shape ? { here, selected: shape, panel: "allocation" } : { here: at });
    return;
  }
  const shapes = picture.answer()?.view === "single" ? picture.answer().found.shapes : [];
  const alive = shapes.filter((shape) => shape.born <= state.here && state.here < shape.died);
  if (alive.length === 0) {
    store.change({ view: "single" });
    return;
  }
  const next = alive[(alive.findIndex((shape) => shape.life === state.selected?.life) + 1) % alive.length];
  store.change({ selected: next, panel: "allocation" });
}

function showDevices(store) {
  const { devices, format } = store.state.meta;
  byId("subtitle").textContent = `${devices.map((device) => device.name).join(", ")} · ${format}`;
  byId("device-choice").hidden = devices.length < 2;
  byId("device").replaceChildren(...devices.map((device, index) => make("option", { value: index }, device.name)));
  byId("device").addEventListener("change", (event) => store.openDevice(Number(event.target.value)));
}

function listenToButtons(store, picture, tables) {
  const { state } = store;
  byId("zoom-in").addEventListener("click", () => store.zoom(0.6));
  byId("zoom-out").addEventListener("click", () => store.zoom(1 / 0.6));
  byId("all").addEventListener("click", () => store.showAll());
  byId("fit").addEventListener("click", () => store.change({ low: 0, high: Math.max(picture.highestShown(), 512) * 1.06 }));
  byId("zoom-peak").addEventListener("click", () => {
    const { at } = store.device().peak;
    const half = Math.min(state.to - state.from, Math.max(40, store.device().last / 20)) / 2;
    store.change({ from: at - half, to: at + half, here: at, panel: "alive" });
  });
  byId("filter-clear").addEventListener("click", () => store.change({ site: null }));
  byId("search").addEventListener("input", () => showLines(store, tables));
}

start().catch((error) => {
  byId("subtitle").textContent = `The page could not be built: ${error.message}`;
});
