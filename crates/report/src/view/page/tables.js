// Texts, frames, stacks and sites by number, and times by position.

function makeTables(meta, columns) {
  const decoder = new TextDecoder();
  const texts = new Map();

  function text(id) {
    if (!texts.has(id)) {
      const start = id === 0 ? 0 : columns.text_ends[id - 1];
      texts.set(id, decoder.decode(columns.text.subarray(start, columns.text_ends[id])));
    }
    return texts.get(id);
  }

  function place(fn, file, line) {
    return { function: text(fn), file: text(file), line };
  }

  // A line of the program. Site 0 has none: nothing was recorded, or a thread without Python frames asked.
  function site(id) {
    const found = place(columns.site_function[id], columns.site_file[id], columns.site_line[id]);
    found.id = id;
    found.label = found.file === "" && found.function === ""
      ? "no Python frames"
      : found.file === "" ? found.function : `${shortPath(found.file)}:${found.line}`;
    return found;
  }

  // Innermost first.
  function frames(stack) {
    const start = stack === 0 ? 0 : columns.stack_ends[stack - 1];
    const members = columns.stack_frames.subarray(start, columns.stack_ends[stack]);
    return Array.from(members, (frame) => ({
      id: frame,
      ...place(columns.frame_function[frame], columns.frame_file[frame], columns.frame_line[frame]),
    }));
  }

  // Microseconds from the trace's start; a straight line between the times that are known.
  function time(device, position) {
    const times = columns[`d${device}.times`];
    const at = position / meta.devices[device].time_step;
    const left = Math.min(Math.floor(at), times.length - 1);
    const right = Math.min(left + 1, times.length - 1);
    return times[left] + (times[right] - times[left]) * Math.min(1, at - left);
  }

  const hasTimes = meta.devices.map((_, device) => columns[`d${device}.times`].some((one) => one > 0));

  return {
    text, site, frames, time,
    siteCount: columns.site_line.length,
    siteOf: (stack) => columns.stack_site[stack],
    sitePeak: (device, id) => columns[`d${device}.site_peak`][id],
    siteAllocations: (device, id) => columns[`d${device}.site_count`][id],
    reserved: (device) => ({
      at: columns[`d${device}.reserved_at`],
      bytes: columns[`d${device}.reserved_bytes`],
    }),
    hasTimes: (device) => hasTimes[device],
  };
}
