// Bytes over time, counted in the page: the same answer as `timeline.rs` gives, from every event of the window.

const CHECKPOINT = 4096;

// The smallest power of two of which at most `columns` cover `span` positions.
function stepOf(span, columns) {
  let step = 1;
  while (step * columns < span) step *= 2;
  return step;
}

// `seriesOf` is the part of each allocation (a Uint8Array in order of birth), below `series`.
function makeTimeline(lives, last, series, seriesOf) {
  const checkpoints = new Float64Array((Math.floor(last / CHECKPOINT) + 2) * series);

  // Columns from `from` to `to`, both included; `now` is the state before `from`.
  function count(now, from, to, step, answer) {
    let total = now.reduce((sum, part) => sum + part, 0);
    let [high, highAt, highest, low] = [now.slice(), from, 0, Infinity];
    let next = from === 0 ? 0 : upperBound(lives.born, from - 1);
    for (let position = from; position <= to; position += 1) {
      const ended = lives.endsAt[position];
      if (ended >= 0) {
        now[seriesOf[ended]] -= lives.bytes[ended];
        total -= lives.bytes[ended];
      }
      for (; next < lives.born.length && lives.born[next] === position; next += 1) {
        now[seriesOf[next]] += lives.bytes[next];
        total += lives.bytes[next];
      }
      if (total > highest || low === Infinity) {
        [highest, highAt] = [total, position];
        high.set(now);
      }
      if (total < low) low = total;
      if ((position - from + 1) % step === 0 || position === to) {
        answer?.at.push(highAt);
        answer?.low.push(low);
        answer?.parts.push(...high);
        [highest, low] = [0, Infinity];
      }
    }
  }

  const state = new Float64Array(series);
  for (let block = 0; block * CHECKPOINT <= last; block += 1) {
    checkpoints.set(state, block * series);
    count(state, block * CHECKPOINT, Math.min((block + 1) * CHECKPOINT - 1, last), CHECKPOINT, null);
  }

  return function timeline(from, to, columns) {
    const end = Math.min(to, last);
    const span = end - Math.min(from, end) + 1;
    const step = stepOf(span, columns);
    const first = Math.floor(Math.min(from, end) / step) * step;
    const answer = { from: first, step, series, at: [], low: [], parts: [] };
    const block = Math.floor(first / CHECKPOINT);
    const now = checkpoints.slice(block * series, (block + 1) * series);
    if (first > block * CHECKPOINT) count(now, block * CHECKPOINT, first - 1, CHECKPOINT, null);
    count(now, first, Math.min((Math.floor(end / step) + 1) * step - 1, last), step, answer);
    return answer;
  };
}
