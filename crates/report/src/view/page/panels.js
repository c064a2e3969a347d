// The details under the picture: the chosen allocation, and what is there at the chosen position by line, by segment and by stack.

function makePanels(store, answers, tables) {
  const { state } = store;
  const panel = byId("panel");
  let [moment, momentOf] = [null, ""];

  const mark = makeTabs(byId("panels"), [
    ["alive", "Alive here"], ["allocation", "Allocation"], ["segments", "Segments"], ["flame", "Flame graph"],
  ], (name) => store.change({ panel: name }));

  const request = latestOnly(
    ({ device, at }) => answers.moment(device, at),
    (found, { device }) => {
      moment = { ...found, device };
      show();
    },
  );

  function refresh(_, changed) {
    mark(state.panel);
    const key = `${state.device}/${state.here}`;
    if (key !== momentOf) {
      momentOf = key;
      request({ device: state.device, at: state.here });
    }
    if (["panel", "selected", "device"].some((name) => name in changed)) show();
  }

  function show() {
    showHere();
    if (state.panel === "allocation") showAllocation();
    else if (!moment || moment.device !== state.device) panel.replaceChildren();
    else if (state.panel === "alive") showAlive();
    else if (state.panel === "segments") showSegments();
    else drawFlame(panel, moment.stacks, tables);
  }

  function showHere() {
    if (!moment) return;
    const time = tables.hasTimes(state.device) ? `, ${timeText(tables.time(state.device, moment.at))}` : "";
    const isPeak = moment.at === store.device().peak.at ? " (the peak)" : "";
    byId("here").textContent = `Event ${countText(moment.at)}${time}${isPeak}: ${bytesText(moment.live_bytes)} live of ${bytesText(moment.reserved_bytes)} reserved`;
  }

  function facts(pairs) {
    return make("dl", { class: "facts" }, ...pairs.filter(Boolean).map(([name, value]) => make("div", null, make("dt", null, name), make("dd", null, value))));
  }

  function showAllocation() {
    const shape = state.selected;
    if (!shape) {
      panel.replaceChildren(make("p", { class: "none" }, "Choose “Allocations” above the picture and click one, or press Enter in the picture."));
      return;
    }
    const device = store.device();
    const site = tables.site(tables.siteOf(shape.stack));
    const hasTimes = tables.hasTimes(state.device);
    const isAlive = shape.died > device.last;
    const at = (position) => (hasTimes ? `event ${countText(position)}, ${timeText(tables.time(state.device, position))}` : `event ${countText(position)}`);
    const life = hasTimes ? timeText(tables.time(state.device, Math.min(shape.died, device.last)) - tables.time(state.device, shape.born)) : plural(shape.died - shape.born, "event", "events");
    const inferred = device.kinds_inferred ? " (inferred)" : "";
    panel.replaceChildren(
      make("h3", { id: "allocation-title" }, `${bytesText(shape.bytes)} from ${site.label}`),
      facts([
        ["Size", `${bytesText(shape.bytes)} (${countText(shape.bytes)} bytes)`],
        ["Kind", state.meta.kinds[shape.kind] + inferred],
        ["Made", shape.born === 0 ? "before the trace" : at(shape.born)],
        ["Freed", isAlive ? "never; alive at the end" : at(shape.died)],
        ["Lived", isAlive ? `${life}, to the end` : life],
        ["Address", `0x${shape.address}`],
      ]),
      make("p", null,
        make("button", { type: "button", onclick: () => showShape(store, shape) }, "Zoom to it"), " ",
        make("button", { type: "button", onclick: () => store.change({ site: site.id, view: "single" }) }, "Only this line")),
      make("h3", { style: { marginTop: "14px" } }, "Stack, innermost first"),
      stackList(shape.stack, site),
    );
  }

  function stackList(stack, site) {
    const frames = tables.frames(stack);
    if (frames.length === 0) return make("p", { class: "none" }, "No stack was recorded for it. PyTorch's backward threads have none.");
    let isFound = false;
    return make("ol", { class: "stack", id: "stack" }, ...frames.map((frame) => {
      const isOwn = !isFound && frame.file === site.file && frame.line === site.line && frame.function === site.function;
      isFound ||= isOwn;
      const place = frame.file ? `${frame.file}:${frame.line}` : "";
      return make("li", { class: isOwn ? "own" : undefined }, frame.function, " ", make("span", { class: "place" }, place));
    }));
  }

  function showAlive() {
    const bySite = new Map();
    for (const { stack, bytes, count } of moment.stacks) {
      const id = tables.siteOf(stack);
      const entry = bySite.get(id) ?? { id, bytes: 0, count: 0 };
      entry.bytes += bytes;
      entry.count += count;
      bySite.set(id, entry);
    }
    const rows = [...bySite.values()].sort((a, b) => b.bytes - a.bytes);
    const body = rows.slice(0, 60).map(({ id, bytes, count }) => {
      const site = tables.site(id);
      return make("tr", null,
        make("td", null, make("button", { type: "button", title: site.file, onclick: () => chooseSite(store, id) },
          site.label, " ", make("span", { class: "function" }, site.file ? site.function : ""))),
        make("td", { class: "number" }, bytesText(bytes)),
        make("td", { class: "number" }, shareText(bytes, moment.live_bytes)),
        make("td", { class: "number" }, countText(count)),
        make("td", { class: "share" }, make("span", { class: "meter", style: { width: `${(100 * bytes) / rows[0].bytes}%` } })));
    });
    panel.replaceChildren(make("table", { id: "alive" },
      make("thead", null, make("tr", null,
        make("th", { scope: "col" }, "Line"), make("th", { scope: "col", class: "number" }, "Bytes"),
        make("th", { scope: "col", class: "number" }, "Share"), make("th", { scope: "col", class: "number" }, "Allocations"),
        make("th", { scope: "col", class: "share" }, make("span", { class: "muted" }, "")))),
      make("tbody", null, ...body)));
    if (rows.length > 60) panel.append(make("p", { class: "muted" }, `and ${plural(rows.length - 60, "line", "lines")} more`));
  }

  function showSegments() {
    const { segments, segment_count: count } = moment;
    if (count === 0) {
      panel.replaceChildren(make("p", { class: "none" }, "No segment is held here, or the file does not say which."));
      return;
    }
    const largest = segments[0].bytes;
    const rows = segments.map((segment) => segmentRow(segment, largest));
    const free = moment.reserved_bytes - moment.used_bytes;
    panel.replaceChildren(
      make("p", { class: "muted" }, `${plural(count, "segment", "segments")}, ${bytesText(moment.reserved_bytes)} from the driver, ${bytesText(Math.max(0, free))} of it free. Colours are kinds; click a block for its stack.`),
      make("div", { id: "segments" }, ...rows.map(([row]) => row)),
    );
    if (count > segments.length) panel.append(make("p", { class: "muted" }, `and ${plural(count - segments.length, "segment", "segments")} more, none of them larger`));
    for (const [, draw] of rows) draw();
  }

  function segmentRow(segment, largest) {
    const canvas = make("canvas", { style: { width: `${Math.max(4, 100 * Math.sqrt(segment.bytes / largest))}%`, cursor: "pointer" } });
    const stream = segment.stream === null || segment.stream === 0 ? "" : ` · stream ${segment.stream}`;
    const label = `0x${segment.address}: ${bytesText(segment.used_bytes)} of ${bytesText(segment.bytes)} in ${plural(segment.used_count, "block", "blocks")}${stream}${segment.is_expandable ? " · expandable" : ""}`;
    canvas.addEventListener("click", async (event) => {
      const { left, width } = canvas.getBoundingClientRect();
      const at = ((event.clientX - left) / width) * segment.bytes;
      const run = segment.runs.find((one) => one.start <= at && at < one.start + one.bytes);
      if (run) store.change({ selected: await answers.allocation(state.device, run.life), panel: "allocation" });
    });
    const draw = () => {
      const { context, width, height } = openCanvas(canvas);
      for (const run of segment.runs) {
        context.globalAlpha = run.count === 1 ? 1 : 0.4 + 0.6 * (run.used_bytes / run.bytes);
        context.fillStyle = colours.kinds[run.kind];
        const start = (run.start / segment.bytes) * width;
        context.fillRect(start, 0, Math.max(0.7, (run.bytes / segment.bytes) * width - 0.4), height);
      }
    };
    const row = make("div", { class: "segment", title: label, role: "img", "aria-label": label },
      make("code", null, `0x${segment.address}`), make("div", null, canvas),
      make("span", { class: "number" }, `${Math.round((100 * segment.used_bytes) / segment.bytes)} % of ${tickText(segment.bytes)}`));
    return [row, draw];
  }

  store.listen(refresh);
  return { show, moment: () => moment };
}
