// The main picture: stacked bytes over time or single allocations, with axes and marks. It draws what it was last answered at
// once and asks for what is missing, so that zooming never waits.

// `onAnswer` is called when there is something new to say about the picture.
function makePicture(store, answers, tables, onAnswer) {
  const canvas = byId("picture");
  const { state } = store;
  // Counts for the tests, which cannot read pixels: what the last drawing contained.
  const drawn = { view: "", columns: 0, shapes: 0, labels: 0, drawings: 0, answerFrom: 0, answerTo: 0 };
  let [answer, isDue] = [null, false];
  let box = { width: 1, height: 1 };

  const x = (position) => MARGIN.left + ((position - state.from) / (state.to - state.from)) * box.width;
  const y = (bytes) => MARGIN.top + box.height - ((bytes - state.low) / (state.high - state.low)) * box.height;
  const positionAt = (left) => state.from + ((left - MARGIN.left) / box.width) * (state.to - state.from);
  const bytesAt = (top) => state.low + ((MARGIN.top + box.height - top) / box.height) * (state.high - state.low);

  const request = latestOnly(
    ({ device, view, window }) =>
      view === "single"
        ? answers.shapes(device, window)
        : answers.timeline(device, view, window.from, window.to, window.columns),
    (found, question) => {
      answer = { ...question, found };
      redraw();
      onAnswer();
    },
  );

  // Asks for the window and a quarter more on each side, for moving.
  function ask() {
    const { last } = store.device();
    const span = state.to - state.from;
    const from = Math.max(0, Math.floor(state.from - span / 4));
    const to = Math.min(last, Math.ceil(state.to + span / 4));
    const wider = (to - from + 1) / span;
    request({
      device: state.device, view: state.view,
      window: {
        from, to, low: Math.floor(Math.max(0, state.low)), high: Math.ceil(state.high),
        columns: Math.max(16, Math.round(box.width * wider)), rows: Math.max(16, Math.round(box.height)),
        site: state.view === "single" ? state.site : null,
      },
    });
  }

  function redraw() {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      draw();
    });
  }

  function draw() {
    const { context, width, height } = openCanvas(canvas);
    box = { width: Math.max(10, width - MARGIN.left - MARGIN.right), height: height - MARGIN.top - MARGIN.bottom };
    drawn.drawings += 1;
    const view = { state, store, tables, box, drawn, x, y };
    drawAxes(context, view);
    context.save();
    context.beginPath();
    context.rect(MARGIN.left, MARGIN.top, box.width, box.height);
    context.clip();
    drawSteps(context, view);
    drawFindingSpan(context, view);
    if (answer && answer.device === state.device && answer.view === state.view) {
      drawn.view = answer.view;
      [drawn.answerFrom, drawn.answerTo] = [answer.window.from, answer.window.to];
      if (answer.view === "single") drawShapes(context, view, answer);
      else drawStack(context, view, answer.found);
    }
    if (state.view !== "single") drawReserved(context, view);
    drawMarks(context, view);
    drawCursor(context, view);
    context.restore();
  }

  // The allocation at a place on the screen, if it is drawn as one.
  function shapeAt(left, top) {
    if (!answer || answer.view !== "single" || state.view !== "single") return null;
    const [position, bytes] = [positionAt(left), bytesAt(top)];
    return answer.found.shapes.find(
      (shape) => shape.born <= position && position < shape.died && shape.offset <= bytes && bytes < shape.offset + shape.bytes,
    ) ?? null;
  }

  // The column under a position of a stacked view: its parts and where in time they were.
  function columnAt(position) {
    if (!answer || answer.view === "single" || answer.view !== state.view) return null;
    const { from, step, series, at, parts, low } = answer.found;
    const column = Math.floor((position - from) / step);
    if (column < 0 || column >= at.length) return null;
    return { at: at[column], low: low[column], parts: parts.slice(column * series, (column + 1) * series) };
  }

  // The highest total in the window, for fitting the height to it.
  function highestShown() {
    if (!answer || answer.view !== state.view) return 0;
    if (answer.view === "single") {
      const shown = answer.found.shapes.filter((shape) => shape.died > state.from && shape.born < state.to);
      return Math.max(0, ...shown.map((shape) => shape.offset + shape.bytes));
    }
    const { from, step, series, at, parts } = answer.found;
    let most = 0;
    for (let column = 0; column < at.length; column += 1) {
      if (from + (column + 1) * step < state.from || from + column * step > state.to) continue;
      let total = 0;
      for (let part = 0; part < series; part += 1) total += parts[column * series + part];
      most = Math.max(most, total);
    }
    return most;
  }

  store.listen((_, changed) => {
    const isOnlyPointer = Object.keys(changed).every((key) => ["hover", "here", "selected", "panel", "finding"].includes(key));
    redraw();
    if (!isOnlyPointer) ask();
  });
  new ResizeObserver(() => {
    draw();
    ask();
  }).observe(canvas);

  return {
    canvas, redraw, draw, positionAt, bytesAt, shapeAt, columnAt, highestShown, drawn,
    x, y, answer: () => answer,
  };
}
