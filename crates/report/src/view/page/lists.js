// What stands around the picture: figures, legend, what is shown in words, findings, and lines to search in.

const MOST_LINES = 200;

function showFigures(store, tables) {
  const device = store.device();
  const time = tables.hasTimes(store.state.device) ? ` in ${timeText(tables.time(store.state.device, device.last))}` : "";
  const figures = [
    ["Peak, live", bytesText(device.peak.bytes), `at event ${countText(device.peak.at)}`],
    ["Peak, reserved", bytesText(device.reserved_peak.bytes), ""],
    ["Live at the end", bytesText(device.end_bytes), ""],
    ["Allocations", countText(device.lives), ""],
    ["Events", countText(device.last), time],
  ];
  byId("figures").replaceChildren(...figures.map(([name, value, more]) =>
    make("div", null, make("dt", null, name), make("dd", null, value, " ", make("small", null, more)))));
}

function showLegend(store, tables) {
  const { state } = store;
  const device = store.device();
  const items = [];
  if (state.view === "site") {
    device.top_sites.forEach((id, part) => items.push(make("li", null, dot(colours.sites[part]),
      make("button", { type: "button", title: tables.site(id).file, onclick: () => chooseSite(store, id) }, tables.site(id).label))));
    items.push(make("li", null, dot(colours.siteRest), "all other lines"));
  } else {
    state.meta.kinds.forEach((kind, part) => items.push(make("li", null, dot(colours.kinds[part]), kind)));
    if (device.kinds_inferred) items.push(make("li", null, "kinds are inferred from stacks and lifetimes"));
  }
  if (state.view === "single") items.push(make("li", null, dot(colours.rest), "too small to show one by one"));
  else items.push(make("li", null, make("span", { class: "stroke" }), "reserved"));
  byId("legend").replaceChildren(...items);
}

// The window in words, which is also what a screen reader says of the picture.
function showStatus(store, tables, picture) {
  const { state } = store;
  const [first, last] = [Math.max(0, Math.floor(state.from)), Math.min(store.device().last, Math.ceil(state.to))];
  const parts = [`Events ${countText(first)} to ${countText(last)}`];
  if (tables.hasTimes(state.device)) parts.push(timeText(tables.time(state.device, last) - tables.time(state.device, first)));
  const answer = picture.answer();
  if (state.view === "single" && answer?.view === "single") {
    const { shapes, alive } = answer.found;
    parts.push(`${countText(shapes.length)} of ${plural(alive, "allocation", "allocations")} drawn one by one`);
  }
  byId("status").textContent = `${parts.join(" · ")}.`;
  const views = { kind: "Memory over time by kind", site: "Memory over time by line", single: "Single allocations over time" };
  picture.canvas.setAttribute("aria-label", `${views[state.view]}. ${parts.join(", ")}.`);
}

function showTip(store, tables, picture) {
  const { state } = store;
  const tip = byId("tip");
  const content = state.hover && tipContent(store, tables, picture);
  tip.hidden = !content;
  if (!content) return;
  tip.replaceChildren(...content);
  const { width } = picture.canvas.getBoundingClientRect();
  const isLeft = state.hover.left > width * 0.6;
  tip.style.left = isLeft ? "auto" : `${state.hover.left + 14}px`;
  tip.style.right = isLeft ? `${width - state.hover.left + 14}px` : "auto";
  tip.style.top = `${Math.max(4, state.hover.top - 20)}px`;
}

function tipContent(store, tables, picture) {
  const { state } = store;
  const { left, top } = state.hover;
  const shape = picture.shapeAt(left, top);
  if (shape) {
    const site = tables.site(tables.siteOf(shape.stack));
    return [
      make("div", null, make("b", null, bytesText(shape.bytes)), ` ${state.meta.kinds[shape.kind]}`),
      make("div", null, site.label), make("div", { class: "muted" }, site.file ? site.function : ""),
    ];
  }
  const column = picture.columnAt(picture.positionAt(left));
  if (!column) return null;
  const total = column.parts.reduce((sum, part) => sum + part, 0);
  const time = tables.hasTimes(state.device) ? ` · ${timeText(tables.time(state.device, column.at))}` : "";
  const names = state.view === "kind" ? state.meta.kinds : [...store.device().top_sites.map((id) => tables.site(id).label), "all other lines"];
  const parts = column.parts.map((bytes, part) => ({ bytes, part })).filter(({ bytes }) => bytes > 0).sort((a, b) => b.bytes - a.bytes);
  const low = column.low < total ? `, at least ${bytesText(column.low)}` : "";
  return [
    make("div", null, make("b", null, bytesText(total)), make("span", { class: "muted" }, `${low} · event ${countText(column.at)}${time}`)),
    ...parts.slice(0, 7).map(({ bytes, part }) => make("div", { class: "row" }, dot(seriesColour(state, part, column.parts.length)),
      make("span", { class: "grow" }, names[part]), make("span", null, bytesText(bytes)))),
  ];
}

function showFindings(store, tables) {
  const { state } = store;
  const { findings } = state.meta;
  byId("findings-title").replaceChildren("Findings ", make("span", { class: "count" }, String(findings.length)));
  if (findings.length === 0) {
    const hasHistory = state.meta.devices.some((device) => device.last > 0);
    const said = hasHistory ? "Nothing to complain about in this trace." : "No history was recorded: leaks cannot be found in it.";
    byId("findings").replaceChildren(make("li", { class: "none" }, said));
    return;
  }
  byId("findings").replaceChildren(...findings.map((finding, index) => make("li", null,
    make("button", { type: "button", "aria-current": String(state.finding === index), onclick: () => goToFinding(store, index) },
      make("span", { class: "bytes" }, bytesText(finding.bytes)),
      make("span", { class: "kind" }, finding.kind.replaceAll("-", " ")),
      make("span", { class: "cause" }, finding.cause),
      make("span", { class: "message" }, finding.message),
      finding.advice ? make("span", { class: "advice" }, finding.advice) : null))));
}

// Shows the span that a finding is about and its line, with some air around it.
function goToFinding(store, index) {
  const finding = store.state.meta.findings[index];
  const device = store.state.meta.devices.findIndex((one) => one.device === finding.device);
  if (device >= 0 && device !== store.state.device) store.openDevice(device);
  const [from, to] = finding.span;
  const air = Math.max(8, (to - from) * 0.08);
  store.change({
    finding: index, from: from - air, to: to + air, here: to,
    site: finding.site, view: finding.site === null ? store.state.view : "site", panel: "alive",
  });
}

// Sites by what they hold at the peak; those that match come from names of files and functions, and from whole stacks.
function showLines(store, tables) {
  const { state } = store;
  const words = byId("search").value.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const found = [];
  for (let id = 0; id < tables.siteCount; id += 1) {
    if (tables.siteAllocations(state.device, id) === 0) continue;
    const site = tables.site(id);
    const text = `${site.file}:${site.line} ${site.function} ${site.label}`.toLowerCase();
    if (words.every((word) => text.includes(word))) found.push({ ...site, bytes: tables.sitePeak(state.device, id), count: tables.siteAllocations(state.device, id) });
  }
  found.sort((a, b) => b.bytes - a.bytes || b.count - a.count);
  byId("lines-note").textContent = `${plural(found.length, "line", "lines")}, by bytes at the peak`;
  byId("lines").replaceChildren(...found.slice(0, MOST_LINES).map((site) => make("li", null,
    make("button", { type: "button", title: site.file, "aria-pressed": String(state.site === site.id), onclick: () => chooseSite(store, state.site === site.id ? null : site.id) },
      make("span", { class: "row" }, make("span", { class: "place grow" }, site.label), make("span", { class: "number" }, bytesText(site.bytes))),
      make("span", { class: "function" }, `${site.file ? `${site.function} · ` : ""}${plural(site.count, "allocation", "allocations")}`)))));
}

// Shows one line in a view that can: its own band if it has one, else its allocations.
function chooseSite(store, id) {
  const { state } = store;
  const hasBand = store.device().top_sites.includes(id);
  if (id === null || state.view === "single") store.change({ site: id });
  else store.change({ site: id, view: hasBand ? "site" : "single" });
}

function showFilter(store, tables) {
  const { site, view } = store.state;
  byId("filter").hidden = site === null || view === "kind";
  if (site === null) return;
  const { label, file, function: name } = tables.site(site);
  byId("filter-text").textContent = `${view === "single" ? "Only" : "In colour:"} ${label}${file ? `, ${name}` : ""}`;
}
