// Drawing: each function puts one thing into the picture. All they know is the `view` that they are given: what is looked at
// (`state`), the size of the picture (`box`), and where positions and bytes are in it (`x`, `y`). `picture.js` calls them.

const MARGIN = { left: 74, right: 10, top: 12, bottom: 34 };

function drawAxes(context, view) {
  const { state, store, tables, box, x, y } = view;
  context.font = "11.5px system-ui, sans-serif";
  context.fillStyle = colours.faint;
  context.strokeStyle = colours.grid;
  context.lineWidth = 1;
  context.textAlign = "right";
  context.textBaseline = "middle";
  const byteStep = roundStep(((state.high - state.low) / box.height) * 48, 1024);
  for (let bytes = Math.ceil(state.low / byteStep) * byteStep; bytes <= state.high; bytes += byteStep) {
    const top = Math.round(y(bytes)) + 0.5;
    context.beginPath();
    context.moveTo(MARGIN.left, top);
    context.lineTo(MARGIN.left + box.width, top);
    context.stroke();
    context.fillText(tickText(bytes), MARGIN.left - 8, top);
  }
  context.textBaseline = "top";
  context.textAlign = "center";
  const hasTimes = tables.hasTimes(state.device);
  const step = Math.max(1, roundStep(((state.to - state.from) / box.width) * 110, 10));
  const apart = hasTimes ? closest(tables, state, step) : 0;
  for (let position = Math.ceil(state.from / step) * step; position <= state.to; position += step) {
    const left = Math.round(x(position)) + 0.5;
    context.beginPath();
    context.moveTo(left, MARGIN.top + box.height);
    context.lineTo(left, MARGIN.top + box.height + 4);
    context.stroke();
    if (left < MARGIN.left + 20 || left > MARGIN.left + box.width - 24) continue;
    context.fillText(countText(position), left, MARGIN.top + box.height + 6);
    if (hasTimes) {
      context.fillText(timeTick(tables.time(state.device, position), apart), left, MARGIN.top + box.height + 19);
    }
  }
  context.textAlign = "right";
  context.fillText("event", MARGIN.left - 8, MARGIN.top + box.height + 6);
  if (hasTimes) context.fillText("time", MARGIN.left - 8, MARGIN.top + box.height + 19);
}

// The smallest time between two ticks, in microseconds: all of them get the digits that these two need.
function closest(tables, state, step) {
  let least = Infinity;
  const first = Math.ceil(state.from / step) * step;
  for (let position = first; position + step <= state.to; position += step) {
    const apart = tables.time(state.device, position + step) - tables.time(state.device, position);
    if (apart > 0) least = Math.min(least, apart);
  }
  return least === Infinity ? 1 : least;
}

// Where the program's pattern begins again.
function drawSteps(context, view) {
  const { state, store, box, x } = view;
  const { steps } = store.device();
  const shown = steps.filter((step) => step >= state.from && step <= state.to);
  if (shown.length === 0 || box.width / shown.length < 7) return;
  context.strokeStyle = colours.line;
  context.setLineDash([2, 3]);
  for (const step of shown) drawLine(context, Math.round(x(step)) + 0.5, MARGIN.top, Math.round(x(step)) + 0.5, MARGIN.top + box.height);
  context.setLineDash([]);
}

function drawLine(context, left, top, right, bottom) {
  context.beginPath();
  context.moveTo(left, top);
  context.lineTo(right, bottom);
  context.stroke();
}

function drawFindingSpan(context, view) {
  const { state, box, x } = view;
  const finding = state.meta.findings[state.finding];
  if (!finding || state.meta.devices[state.device].device !== finding.device) return;
  const [left, right] = [x(finding.span[0]), x(finding.span[1] + 1)];
  context.globalAlpha = 0.06;
  context.fillStyle = colours.warn;
  context.fillRect(left, MARGIN.top, Math.max(2, right - left), box.height);
  context.globalAlpha = 1;
}

function seriesColour(state, part, series) {
  if (state.view === "kind") return colours.kinds[part];
  return part === series - 1 ? colours.siteRest : colours.sites[part % colours.sites.length];
}

// Steps, one band a part. `below` carries the height that earlier parts have reached in each column.
function drawStack(context, view, found) {
  const { state, store, drawn, x, y } = view;
  const { from, step, series, at, parts, low } = found;
  drawn.columns = at.length;
  const below = new Float64Array(at.length);
  const ends = Float64Array.from({ length: at.length + 1 }, (_, column) => x(Math.min(from + column * step, store.device().last + 1)));
  const chosen = state.view === "site" && state.site !== null ? store.device().top_sites.indexOf(state.site) : -1;
  for (let part = 0; part < series; part += 1) {
    context.beginPath();
    context.moveTo(ends[0], y(below[0]));
    for (let column = 0; column < at.length; column += 1) {
      const top = y(below[column] + parts[column * series + part]);
      context.lineTo(ends[column], top);
      context.lineTo(ends[column + 1], top);
    }
    for (let column = at.length - 1; column >= 0; column -= 1) {
      context.lineTo(ends[column + 1], y(below[column]));
      context.lineTo(ends[column], y(below[column]));
      below[column] += parts[column * series + part];
    }
    context.fillStyle = seriesColour(state, part, series);
    context.globalAlpha = chosen >= 0 && chosen !== part ? 0.22 : 0.92;
    context.fill();
  }
  context.globalAlpha = 1;
  if (step > 1) drawLow(context, view, ends, below, low);
}

// Where a column has many events: between its lowest and its highest total memory came and went, so this part is paler.
function drawLow(context, view, ends, high, low) {
  const { y } = view;
  context.fillStyle = colours.card;
  context.globalAlpha = 0.38;
  context.beginPath();
  for (let column = 0; column < low.length; column += 1) {
    const top = y(high[column]);
    context.rect(ends[column], top, ends[column + 1] - ends[column], y(low[column]) - top);
  }
  context.fill();
  context.globalAlpha = 1;
}

function drawReserved(context, view) {
  const { state, tables, x, y } = view;
  const { at, bytes } = tables.reserved(state.device);
  if (at.length === 0) return;
  context.strokeStyle = colours.faint;
  context.lineWidth = 1.25;
  context.setLineDash([5, 4]);
  context.beginPath();
  const first = Math.max(0, upperBound(at, state.from) - 1);
  context.moveTo(x(at[first]), y(bytes[first]));
  let point = first;
  for (; point < at.length && at[point] <= state.to; point += 1) {
    context.lineTo(x(at[point]), y(bytes[Math.max(0, point - 1)]));
    context.lineTo(x(at[point]), y(bytes[point]));
  }
  context.lineTo(x(state.to), y(bytes[Math.max(0, point - 1)]));
  context.stroke();
  context.setLineDash([]);
  context.lineWidth = 1;
}

function drawShapes(context, view, { found, window }) {
  const { state, drawn, x, y } = view;
  drawRest(context, view, found, window);
  drawn.shapes = found.shapes.length;
  drawn.labels = 0;
  for (const shape of found.shapes) {
    const [left, right] = [x(shape.born), x(shape.died)];
    const [top, bottom] = [y(shape.offset + shape.bytes), y(shape.offset)];
    context.fillStyle = colours.kinds[shape.kind];
    const [width, height] = [right - left, bottom - top];
    const gap = width > 4 && height > 4 ? 0.5 : 0;
    context.fillRect(left, top, Math.max(width - gap, 0.7), Math.max(height - gap, 0.7));
    if (width > 70 && height > 15) drawLabel(context, view, shape, left, right, top, height);
  }
  if (state.selected) drawOutline(context, view, state.selected);
}

function drawLabel(context, view, shape, left, right, top, height) {
  const { tables, box, drawn } = view;
  const start = Math.max(left, MARGIN.left) + 6;
  const room = Math.min(right, MARGIN.left + box.width) - start - 6;
  if (room < 60) return;
  drawn.labels += 1;
  context.save();
  context.beginPath();
  context.rect(start, top, room, height);
  context.clip();
  context.font = "11.5px system-ui, sans-serif";
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.fillStyle = document.documentElement.dataset.theme === "dark" ? "#0d1217" : "#ffffff";
  const site = tables.site(tables.siteOf(shape.stack));
  context.fillText(`${bytesText(shape.bytes)}  ${site.label}`, start, top + Math.min(height / 2, 12));
  context.restore();
}

// How densely everything else fills the picture.
function drawRest(context, view, found, window) {
  const { x, y } = view;
  const across = found.cells_across;
  if (!across) return;
  const [width, height] = [(CELL / window.columns) * (window.to - window.from + 1), (CELL / window.rows) * (window.high - window.low)];
  context.fillStyle = colours.rest;
  for (let cell = 0; cell < found.rest.length; cell += 1) {
    if (found.rest[cell] === 0) continue;
    const [column, row] = [cell % across, Math.floor(cell / across)];
    const [left, right] = [x(window.from + column * width), x(window.from + (column + 1) * width)];
    const [top, bottom] = [y(window.low + (row + 1) * height), y(window.low + row * height)];
    context.globalAlpha = (found.rest[cell] / 255) * 0.6;
    context.fillRect(left, top, right - left, bottom - top);
  }
  context.globalAlpha = 1;
}

function drawOutline(context, view, shape) {
  const { x, y } = view;
  const [left, right] = [x(shape.born), x(shape.died)];
  const [top, bottom] = [y(shape.offset + shape.bytes), y(shape.offset)];
  context.strokeStyle = colours.mark;
  context.lineWidth = 2;
  context.strokeRect(left, top, Math.max(right - left, 2), Math.max(bottom - top, 2));
  context.lineWidth = 1;
}

// The load line at the peak, and a line where an allocation failed.
function drawMarks(context, view) {
  const { state, store, box, x, y } = view;
  const found = store.device();
  context.lineWidth = 1.5;
  for (const oom of found.ooms) {
    context.strokeStyle = colours.warn;
    drawLine(context, x(oom.at), MARGIN.top, x(oom.at), MARGIN.top + box.height);
  }
  if (state.view !== "single" && found.peak.bytes > 0) {
    const [left, top] = [x(found.peak.at), y(found.peak.bytes)];
    context.strokeStyle = colours.mark;
    context.beginPath();
    context.arc(left, top, 5, 0, 2 * Math.PI);
    context.stroke();
    drawLine(context, left - 10, top, left + 10, top);
  }
  context.lineWidth = 1;
}

function drawCursor(context, view) {
  const { state, box, x } = view;
  context.strokeStyle = colours.mark;
  context.globalAlpha = 0.75;
  drawLine(context, Math.round(x(state.here)) + 0.5, MARGIN.top, Math.round(x(state.here)) + 0.5, MARGIN.top + box.height);
  if (state.hover) {
    context.globalAlpha = 0.3;
    drawLine(context, Math.round(state.hover.left) + 0.5, MARGIN.top, Math.round(state.hover.left) + 0.5, MARGIN.top + box.height);
  }
  context.globalAlpha = 1;
}
