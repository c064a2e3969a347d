// The strip under the picture: the whole trace, small, with the window in it. Dragging in it moves the window.

function makeOverview(store, answers) {
  const canvas = byId("overview");
  const { state } = store;
  let [whole, wholeOf] = [null, -1];

  async function load() {
    if (wholeOf === state.device) return;
    wholeOf = state.device;
    const { last } = store.device();
    try {
      whole = await answers.timeline(state.device, "kind", 0, last, 1024);
      draw();
    } catch (error) {
      showTrouble(error);
    }
  }

  function draw() {
    const { context, width, height } = openCanvas(canvas);
    const inner = width - MARGIN.left - MARGIN.right;
    const x = (position) => MARGIN.left + (position / (store.device().last + 1)) * inner;
    context.fillStyle = colours.grid;
    context.fillRect(MARGIN.left, 0, inner, height);
    if (whole) {
      const most = Math.max(1, store.device().peak.bytes);
      context.fillStyle = colours.accent;
      context.globalAlpha = 0.45;
      for (let column = 0; column < whole.at.length; column += 1) {
        let total = 0;
        for (let part = 0; part < whole.series; part += 1) total += whole.parts[column * whole.series + part];
        const [left, right] = [x(whole.from + column * whole.step), x(Math.min(whole.from + (column + 1) * whole.step, store.device().last + 1))];
        const up = (total / most) * (height - 4);
        context.fillRect(left, height - up, right - left + 0.3, up);
      }
      context.globalAlpha = 1;
    }
    const [left, right] = [x(state.from), x(state.to)];
    context.fillStyle = colours.card;
    context.globalAlpha = 0.65;
    context.fillRect(MARGIN.left, 0, left - MARGIN.left, height);
    context.fillRect(right, 0, MARGIN.left + inner - right, height);
    context.globalAlpha = 1;
    context.strokeStyle = colours.accent;
    context.lineWidth = 1.5;
    context.strokeRect(left + 0.75, 0.75, Math.max(3, right - left - 1.5), height - 1.5);
  }

  function moveTo(event) {
    const { left, width } = canvas.getBoundingClientRect();
    const share = (event.clientX - left - MARGIN.left) / (width - MARGIN.left - MARGIN.right);
    const centre = share * (store.device().last + 1);
    const half = (state.to - state.from) / 2;
    store.change({ from: centre - half, to: centre + half });
  }

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    moveTo(event);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (canvas.hasPointerCapture(event.pointerId)) moveTo(event);
  });
  store.listen(() => {
    load();
    draw();
  });
  new ResizeObserver(draw).observe(canvas);
  return { draw };
}
