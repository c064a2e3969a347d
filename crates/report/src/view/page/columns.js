// Columns from one buffer, as typed arrays over it. The layout is described in `container.rs`.

const ELEMENTS = { u8: Uint8Array, u32: Uint32Array, u64: BigUint64Array, f64: Float64Array };

function unpackColumns(buffer) {
  const headerBytes = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, headerBytes)));
  const data = Math.ceil((4 + headerBytes) / 8) * 8;
  const columns = {};
  for (const [name, element, offset, length] of header) {
    columns[name] = new ELEMENTS[element](buffer, data + offset, length);
  }
  return columns;
}

// What stands in the page: base64 of gzip. The browser unpacks both.
async function embeddedColumns(text) {
  const coded = atob(text);
  const packed = new Uint8Array(coded.length);
  for (let at = 0; at < coded.length; at += 1) packed[at] = coded.charCodeAt(at);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return unpackColumns(await new Response(stream).arrayBuffer());
}

// The first place in a sorted column whose value is above `value`.
function upperBound(column, value) {
  let [low, high] = [0, column.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (column[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}
