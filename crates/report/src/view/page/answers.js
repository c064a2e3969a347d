// Where drawings get their data from: the page itself, or the server that it came from. Both give the same answers.

// Answers from the columns in the page.
function localAnswers(meta, columns, tables) {
  const devices = meta.devices.map((device, index) => {
    const column = (name) => columns[`d${index}.${name}`];
    const lives = {};
    for (const name of ["life", "born", "died", "bytes", "offset", "addr", "stack", "kind"]) lives[name] = column(name);
    lives.endsAt = new Int32Array(device.last + 1).fill(-1);
    for (let at = 0; at < lives.died.length; at += 1) {
      if (lives.died[at] <= device.last) lives.endsAt[lives.died[at]] = at;
    }
    const pieces = {};
    for (const name of ["addr", "bytes", "born", "died", "stream", "expandable"]) pieces[name] = column(`piece_${name}`);
    const part = new Map(device.top_sites.map((site, at) => [site, at]));
    const others = device.top_sites.length;
    const bySite = Uint8Array.from(lives.stack, (stack) => part.get(tables.siteOf(stack)) ?? others);
    // Numbers count those of the trace first, columns those from before it.
    const before = lives.life.length - device.in_trace;
    const placeOf = (life) => (life < device.in_trace ? life + before : life - device.in_trace);
    return {
      lives, pieces, placeOf,
      timelines: {
        kind: makeTimeline(lives, device.last, meta.kinds.length, lives.kind),
        site: makeTimeline(lives, device.last, others + 1, bySite),
      },
    };
  });
  return {
    timeline: async (device, by, from, to, columns) => devices[device].timelines[by](from, to, columns),
    shapes: async (device, window) => {
      const to = Math.min(window.to, meta.devices[device].last);
      return localShapes(devices[device].lives, tables.siteOf, { ...window, to, from: Math.min(window.from, to) });
    },
    allocation: async (device, life) => shapeOf(devices[device].lives, devices[device].placeOf(life)),
    moment: async (device, at) => localMoment(devices[device].lives, devices[device].pieces, meta.kinds.length, at),
  };
}

// Answers from the server. The page's own address has the token, so that relative addresses are enough.
function remoteAnswers() {
  async function ask(route, values) {
    const query = Object.entries(values).filter(([, value]) => value !== null);
    const response = await fetch(`${route}?${query.map(([name, value]) => `${name}=${value}`).join("&")}`);
    if (!response.ok) throw new Error(`the server answered ${response.status}`);
    return response.json();
  }
  return {
    timeline: (device, by, from, to, columns) => ask("timeline", { device, by, from, to, columns }),
    shapes: (device, window) => ask("shapes", { device, ...window }),
    moment: (device, at) => ask("moment", { device, at }),
    allocation: (device, life) => ask("allocation", { device, life }),
  };
}

// One question at a time: while one is under way only the newest of the later ones is kept, and asked afterwards.
function latestOnly(ask, take) {
  let [isBusy, waiting] = [false, null];
  return async function request(question) {
    if (isBusy) {
      waiting = question;
      return;
    }
    isBusy = true;
    try {
      take(await ask(question), question);
    } catch (error) {
      showTrouble(error);
    }
    isBusy = false;
    if (waiting) {
      const next = waiting;
      waiting = null;
      request(next);
    }
  };
}

function showTrouble(error) {
  byId("status").textContent = `No answer: ${error.message}. If the server was stopped, start it again.`;
}
