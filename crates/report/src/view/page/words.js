// Numbers and places as people read them. Pure functions; nothing here knows the page.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

// 1536 -> "1.50 KiB", as the command prints it.
function bytesText(bytes) {
  let unit = 0;
  let value = bytes;
  while (Math.abs(value) >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return unit === 0 ? `${Math.round(value)} B` : `${value.toFixed(2)} ${UNITS[unit]}`;
}

// For axes: no digits that say nothing. 1536 -> "1.5 KiB".
function tickText(bytes) {
  return bytesText(bytes).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " ");
}

function countText(count) {
  return Math.round(count).toLocaleString("en-US");
}

function plural(count, one, many) {
  return `${countText(count)} ${count === 1 ? one : many}`;
}

// Microseconds with three digits or so: "412 µs", "3.21 ms", "1 min 12 s".
function timeText(us) {
  if (us < 1000) return `${Math.round(us)} µs`;
  if (us < 1e6) return `${(us / 1e3).toPrecision(3)} ms`;
  if (us < 60e6) return `${(us / 1e6).toPrecision(3)} s`;
  const seconds = Math.round(us / 1e6);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

// For axes: with as many digits as times `apart` need to be told from each other.
function timeTick(us, apart) {
  const [unit, name] = us < 1000 ? [1, "µs"] : us < 1e6 ? [1e3, "ms"] : [1e6, "s"];
  const digits = Math.min(6, Math.max(0, Math.ceil(-Math.log10(Math.max(apart, 1) / unit))));
  return `${(us / unit).toFixed(unit === 1 ? 0 : digits)} ${name}`;
}

function shareText(part, whole) {
  return whole > 0 ? `${((100 * part) / whole).toFixed(1)} %` : "";
}

// The end of a path: a folder and the file.
function shortPath(path) {
  const parts = path.split("/");
  return parts.length > 2 ? parts.slice(-2).join("/") : path;
}

// The first number of 1, 2, 5, 10, 20, ... (times a power) that is at least `least`.
function roundStep(least, base) {
  const power = base ** Math.floor(Math.log(least) / Math.log(base));
  const steps = base === 1024 ? [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024] : [1, 2, 5, 10];
  return power * (steps.find((step) => power * step >= least) ?? base);
}
