// Mouse, keyboard and touch on the picture. Each becomes one of the moves that `state.js` knows.

const CLICK_PIXELS = 4;

function listenToGestures(store, picture, choose) {
  const { canvas } = picture;
  const { state } = store;
  const pointers = new Map();
  let start = null; // where a drag or pinch began

  const place = (event) => {
    const { left, top } = canvas.getBoundingClientRect();
    return { left: event.clientX - left, top: event.clientY - top };
  };

  function begin() {
    const points = [...pointers.values()];
    start = {
      points, moved: false, from: state.from, to: state.to, low: state.low, high: state.high,
      position: picture.positionAt(points[0].left), bytes: picture.bytesAt(points[0].top),
    };
  }

  // Both fingers keep the positions that they were put on.
  function pinch([a, b]) {
    const [c, d] = start.points;
    const apart = Math.max(8, Math.abs(a.left - b.left)) / Math.max(8, Math.abs(c.left - d.left));
    const { width } = canvas.getBoundingClientRect();
    const inner = width - MARGIN.left - MARGIN.right;
    const span = (start.to - start.from) / apart;
    const share = (left) => (left - MARGIN.left) / inner;
    const centre = start.from + share((c.left + d.left) / 2) * (start.to - start.from);
    const from = centre - share((a.left + b.left) / 2) * span;
    store.change({ from, to: from + span });
  }

  function drag(point) {
    const [first] = start.points;
    start.moved ||= Math.hypot(point.left - first.left, point.top - first.top) > CLICK_PIXELS;
    if (!start.moved) return;
    canvas.classList.add("moving");
    const { width, height } = canvas.getBoundingClientRect();
    const across = (start.to - start.from) / (width - MARGIN.left - MARGIN.right);
    const up = (start.high - start.low) / (height - MARGIN.top - MARGIN.bottom);
    const positions = (first.left - point.left) * across;
    const bytes = (point.top - first.top) * up;
    store.change({
      from: start.from + positions, to: start.to + positions, low: start.low + bytes, high: start.high + bytes,
    });
  }

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, place(event));
    begin();
  });
  canvas.addEventListener("pointermove", (event) => {
    const point = place(event);
    if (pointers.has(event.pointerId)) {
      pointers.set(event.pointerId, point);
      if (pointers.size === 1) drag(point);
      else pinch([...pointers.values()]);
    }
    store.change({ hover: start?.moved ? null : point });
  });
  const end = (event) => {
    if (!pointers.delete(event.pointerId)) return;
    canvas.classList.remove("moving");
    const wasClick = start && !start.moved && start.points.length === 1;
    if (wasClick && event.type === "pointerup") choose(start.points[0]);
    start = null;
    if (pointers.size > 0) {
      begin();
      start.moved = true;
    }
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => store.change({ hover: null }));

  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const { left, top } = place(event);
    const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) && !event.shiftKey;
    if (isSideways) {
      store.move((event.deltaX / 800) * (state.to - state.from), 0);
      return;
    }
    // Shift turns the wheel sideways on some systems.
    const turn = event.deltaY || event.deltaX;
    const factor = Math.exp(Math.sign(turn) * Math.min(0.5, Math.abs(turn) / 400));
    if (event.shiftKey) store.zoomBytes(factor, picture.bytesAt(top));
    else store.zoom(factor, picture.positionAt(left));
  }, { passive: false });
  canvas.addEventListener("dblclick", (event) => {
    const { left, top } = place(event);
    const shape = picture.shapeAt(left, top);
    if (shape) showShape(store, shape);
    else store.zoom(0.25, picture.positionAt(left));
  });

  const span = () => state.to - state.from;
  const height = () => state.high - state.low;
  const keys = {
    ArrowLeft: (event) => (event.shiftKey ? step(-1) : store.move(-span() / 10, 0)),
    ArrowRight: (event) => (event.shiftKey ? step(1) : store.move(span() / 10, 0)),
    ArrowUp: () => store.move(0, height() / 10),
    ArrowDown: () => store.move(0, -height() / 10),
    "+": () => store.zoom(0.7, inWindow()),
    "=": () => store.zoom(0.7, inWindow()),
    "-": () => store.zoom(1 / 0.7, inWindow()),
    PageUp: () => store.zoomBytes(0.7, state.low),
    PageDown: () => store.zoomBytes(1 / 0.7, state.low),
    Home: () => store.showAll(),
    Enter: () => choose(null),
    Escape: () => store.change({ selected: null, site: null, finding: null }),
  };

  // Moves the position that the panels describe by one event.
  function step(by) {
    store.change({ here: Math.min(Math.max(state.here + by, 0), store.device().last) });
  }

  function inWindow() {
    return state.here >= state.from && state.here <= state.to ? state.here : undefined;
  }

  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key](event);
  });
}

// Zooms to an allocation, with some of its neighbours.
function showShape(store, shape) {
  const life = shape.died - shape.born;
  store.change({
    view: "single", selected: shape,
    from: shape.born - life * 0.6 - 2, to: shape.died + life * 0.6 + 2,
    low: shape.offset - shape.bytes * 2, high: shape.offset + shape.bytes * 3,
  });
}
