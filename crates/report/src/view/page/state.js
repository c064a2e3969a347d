// What the reader looks at: device, view, window, position, choice. One object, changed only by `change`, which tells everyone.

const LEAST_SPAN = 6;

function makeState(meta) {
  const listeners = [];
  const state = {
    meta,
    device: 0,
    view: "kind", // kind, site or single
    panel: "alive", // allocation, alive, segments or flame
    from: 0, to: 1, // positions, not always whole ones
    low: 0, high: 1, // bytes
    here: 0, // the position that the panels describe
    hover: null, // under the pointer
    selected: null, // an allocation
    site: null, // only this line
    finding: null,
  };

  function clampWindow() {
    const { last } = device();
    const span = Math.min(Math.max(state.to - state.from, LEAST_SPAN), Math.max(last + 1, LEAST_SPAN));
    const from = Math.min(Math.max(state.from, 0), Math.max(last + 1 - span, 0));
    [state.from, state.to] = [from, from + span];
    const most = fullHeight();
    const height = Math.min(Math.max(state.high - state.low, most / 1e9, 512), most);
    const low = Math.min(Math.max(state.low, 0), most - height);
    [state.low, state.high] = [low, low + height];
  }

  function device() {
    return meta.devices[state.device];
  }

  // The highest byte that the view can show, with some air above it.
  function fullHeight() {
    const found = device();
    const live = Math.max(found.peak.bytes, 1);
    const reserved = found.reserved_peak.bytes;
    const stacked = reserved > live && reserved < live * 1.6 ? reserved : live;
    return Math.max(1024, (state.view === "single" ? Math.max(found.height, 1) : stacked) * 1.06);
  }

  function change(values) {
    const viewBefore = state.view;
    Object.assign(state, values);
    const isNewScale = (viewBefore === "single") !== (state.view === "single");
    if (isNewScale && !("high" in values)) [state.low, state.high] = [0, fullHeight()];
    clampWindow();
    for (const listener of listeners) listener(state, values);
  }

  function showAll() {
    change({ from: 0, to: device().last + 1, low: 0, high: fullHeight() });
  }

  // Zooms in time about a position that stays where it is.
  function zoom(factor, about) {
    const centre = about ?? (state.from + state.to) / 2;
    const span = Math.min((state.to - state.from) * factor, device().last + 1);
    const share = (centre - state.from) / (state.to - state.from);
    change({ from: centre - span * share, to: centre + span * (1 - share) });
  }

  function zoomBytes(factor, about) {
    const centre = about ?? state.low;
    const height = Math.min((state.high - state.low) * factor, fullHeight());
    const share = (centre - state.low) / (state.high - state.low);
    change({ low: centre - height * share, high: centre + height * (1 - share) });
  }

  function move(positions, bytes) {
    change({
      from: state.from + positions, to: state.to + positions,
      low: state.low + bytes, high: state.high + bytes,
    });
  }

  function openDevice(index) {
    state.device = index;
    const found = device();
    change({
      device: index, here: found.peak.at, selected: null, site: null, finding: null, hover: null,
      from: 0, to: found.last + 1, low: 0, high: fullHeight(),
    });
  }

  return {
    state, change, device, fullHeight, showAll, zoom, zoomBytes, move, openDevice,
    listen: (listener) => listeners.push(listener),
  };
}
