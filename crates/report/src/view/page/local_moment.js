// What is there at a position, found in the page: the same answer as `moment.rs` gives.

const MOST_SEGMENTS = 256;
const FINEST = 512;
const ROUND = 512;

function localMoment(lives, pieces, kinds, at) {
  const alive = [];
  const stacks = new Map();
  const byKind = new Array(kinds).fill(0);
  let liveBytes = 0;
  const end = upperBound(lives.born, at);
  for (let life = 0; life < end; life += 1) {
    if (lives.died[life] <= at) continue;
    alive.push(life);
    const bytes = lives.bytes[life];
    const entry = stacks.get(lives.stack[life]) ?? { stack: lives.stack[life], bytes: 0, count: 0 };
    entry.bytes += bytes;
    entry.count += 1;
    stacks.set(entry.stack, entry);
    liveBytes += bytes;
    byKind[lives.kind[life]] += bytes;
  }
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  alive.sort((a, b) => compare(lives.addr[a], lives.addr[b]) || lives.life[a] - lives.life[b]);
  const held = joinedPieces(pieces, at);
  const segments = held.map((piece) => segmentNow(lives, piece, alive));
  segments.sort((a, b) => b.bytes - a.bytes);
  return {
    at,
    live_bytes: liveBytes,
    live_count: alive.length,
    reserved_bytes: held.reduce((sum, piece) => sum + piece.bytes, 0),
    used_bytes: segments.reduce((sum, segment) => sum + segment.used_bytes, 0),
    segments: segments.slice(0, MOST_SEGMENTS),
    segment_count: held.length,
    stacks: [...stacks.values()].sort((a, b) => b.bytes - a.bytes || a.stack - b.stack),
    kinds: byKind,
  };
}

// Pages side by side are one segment. Pieces come by address.
function joinedPieces(pieces, at) {
  const held = [];
  for (let piece = 0; piece < pieces.addr.length; piece += 1) {
    if (pieces.born[piece] > at || pieces.died[piece] <= at) continue;
    const next = {
      addr: pieces.addr[piece], bytes: pieces.bytes[piece], stream: pieces.stream[piece],
      expandable: pieces.expandable[piece] === 1,
    };
    const last = held[held.length - 1];
    const touches = last && last.addr + BigInt(last.bytes) === next.addr;
    if (touches && last.expandable && next.expandable && last.stream === next.stream) last.bytes += next.bytes;
    else held.push(next);
  }
  return held;
}

// The first place in `alive`, which is in order of addresses, from `address` on.
function firstAt(lives, alive, address) {
  let [low, high] = [0, alive.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (lives.addr[alive[middle]] < address) low = middle + 1;
    else high = middle;
  }
  return low;
}

function segmentNow(lives, piece, alive) {
  const end = piece.addr + BigInt(piece.bytes);
  const [first, last] = [firstAt(lives, alive, piece.addr), firstAt(lives, alive, end)];
  const finest = Math.floor(piece.bytes / FINEST);
  const runs = [];
  let used = 0;
  for (let at = first; at < last; at += 1) {
    const life = alive[at];
    const next = at + 1 < last ? lives.addr[alive[at + 1]] : end;
    const rounded = Math.ceil(Math.max(1, lives.bytes[life]) / ROUND) * ROUND;
    const bytes = Math.min(rounded, Number(next - lives.addr[life]));
    const start = Number(lives.addr[life] - piece.addr);
    used += bytes;
    const run = runs[runs.length - 1];
    if (run && bytes < finest && run.bytes < finest && start - (run.start + run.bytes) < Math.floor(finest / 2)) {
      run.bytes = start + bytes - run.start;
      run.used_bytes += bytes;
      run.count += 1;
    } else {
      runs.push({ start, bytes, used_bytes: bytes, count: 1, life: lives.life[life], kind: lives.kind[life] });
    }
  }
  return {
    address: piece.addr.toString(16), bytes: piece.bytes, used_bytes: used, used_count: last - first,
    stream: piece.stream === 0xffffffffffffffffn ? null : Number(piece.stream),
    is_expandable: piece.expandable, runs,
  };
}
