// Single allocations in a window, found in the page: the same answer as `shapes.rs` gives, by looking at each.

const MOST_SHAPES = 3000;
const LEAST_PIXELS = 0.75;
const CELL = 6;

function shapeOf(lives, at) {
  return {
    life: lives.life[at], born: lives.born[at], died: lives.died[at], offset: lives.offset[at],
    bytes: lives.bytes[at], stack: lives.stack[at], kind: lives.kind[at],
    address: lives.addr[at].toString(16),
  };
}

function localShapes(lives, siteOf, window) {
  const { from, to, low, high, columns, rows, site } = window;
  const [across, up] = [(to - from + 1) / columns, (high - low) / rows];
  const end = upperBound(lives.born, to);
  const found = [];
  const small = [];
  let alive = 0;
  for (let at = 0; at < end; at += 1) {
    if (lives.died[at] <= from) continue;
    alive += 1;
    if (site !== null && siteOf(lives.stack[at]) !== site) continue;
    const start = lives.offset[at];
    const top = start + lives.bytes[at];
    if (top <= low || start >= high) continue;
    // In this order, so that areas are equal to the last digit to those of the server.
    const width = (Math.min(lives.died[at], to + 1) - from) / across - (Math.max(lives.born[at], from) - from) / across;
    const height = (Math.min(top, high) - low) / up - (Math.max(start, low) - low) / up;
    if (width >= LEAST_PIXELS && height >= LEAST_PIXELS) found.push([width * height, at]);
    else small.push(at);
  }
  keepLargest(found, small);
  found.sort((a, b) => b[0] - a[0] || lives.life[a[1]] - lives.life[b[1]]);
  for (const [, at] of found.splice(MOST_SHAPES)) small.push(at);
  const cellsAcross = Math.ceil(columns / CELL);
  const cells = new Float32Array(cellsAcross * Math.ceil(rows / CELL));
  for (const at of small) fillCells(cells, cellsAcross, lives, at, window, across, up);
  return {
    shapes: found.map(([, at]) => shapeOf(lives, at)),
    alive,
    cells_across: cellsAcross,
    // What is there at all is visible.
    rest: Array.from(cells, (cell) => (cell === 0 ? 0 : Math.min(255, Math.max(12, Math.floor((cell / (CELL * CELL)) * 255))))),
  };
}

// Moves what is surely not among the largest away, so that sorting does not depend on how many there are. Areas are counted by
// eighths of powers of two first.
function keepLargest(found, small) {
  if (found.length <= MOST_SHAPES) return;
  const place = (area) => Math.max(0, Math.floor(Math.log2(area) * 8) + 8);
  const counts = new Uint32Array(512);
  for (const [area] of found) counts[place(area)] += 1;
  let least = counts.length - 1;
  for (let kept = counts[least]; kept < MOST_SHAPES; kept += counts[least]) least -= 1;
  let kept = 0;
  for (const entry of found) {
    if (place(entry[0]) >= least) found[kept++] = entry;
    else small.push(entry[1]);
  }
  found.length = kept;
}

// Adds one allocation to the cells that it covers, in square pixels.
function fillCells(cells, cellsAcross, lives, at, window, across, up) {
  const cellsUp = cells.length / cellsAcross;
  const left = (Math.max(lives.born[at], window.from) - window.from) / across;
  const right = (Math.min(lives.died[at], window.to + 1) - window.from) / across;
  const bottom = (Math.max(lives.offset[at], window.low) - window.low) / up;
  const top = (Math.min(lives.offset[at] + lives.bytes[at], window.high) - window.low) / up;
  const lastRow = Math.min(Math.floor(top / CELL), cellsUp - 1);
  const lastColumn = Math.min(Math.floor(right / CELL), cellsAcross - 1);
  for (let row = Math.floor(bottom / CELL); row <= lastRow; row += 1) {
    const height = Math.max(0, Math.min(top, (row + 1) * CELL) - Math.max(bottom, row * CELL));
    for (let column = Math.floor(left / CELL); column <= lastColumn; column += 1) {
      const width = Math.max(0, Math.min(right, (column + 1) * CELL) - Math.max(left, column * CELL));
      cells[row * cellsAcross + column] += width * height;
    }
  }
}
