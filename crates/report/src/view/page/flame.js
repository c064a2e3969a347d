// A flame graph of what is alive: the outermost call on top, width by bytes. Boxes are buttons, so that keys and screen readers
// reach them.

const LEAST_SHARE = 0.004;
const MOST_BOXES = 700;
const ROW = 21;

// Stacks as a tree from the outside in.
function flameTree(stacks, tables) {
  const root = { name: "everything", file: "", bytes: 0, count: 0, children: new Map() };
  for (const { stack, bytes, count } of stacks) {
    root.bytes += bytes;
    root.count += count;
    let node = root;
    const frames = tables.frames(stack).reverse();
    const site = tables.site(tables.siteOf(stack));
    if (frames.length === 0) frames.push({ id: -1, function: site.label, file: "", line: 0 });
    for (const frame of frames) {
      let child = node.children.get(frame.id);
      if (!child) {
        child = { name: frame.function, file: frame.file, line: frame.line, bytes: 0, count: 0, children: new Map(), isOwn: false };
        node.children.set(frame.id, child);
      }
      child.isOwn ||= frame.file === site.file && frame.line === site.line;
      child.bytes += bytes;
      child.count += count;
      node = child;
    }
  }
  return root;
}

function drawFlame(container, stacks, tables) {
  const tree = flameTree(stacks, tables);
  const note = make("p", { id: "flame-note" });
  const picture = make("div", { id: "flame" });
  container.replaceChildren(note, picture);

  const describe = (node) => {
    const place = node.file ? ` · ${shortPath(node.file)}:${node.line}` : "";
    return `${node.name}${place} · ${bytesText(node.bytes)} (${shareText(node.bytes, tree.bytes)}) in ${plural(node.count, "allocation", "allocations")}`;
  };

  function show(root) {
    const boxes = [];
    let depth = 0;
    const waiting = [{ node: root, left: 0, level: 0 }];
    while (waiting.length > 0 && boxes.length < MOST_BOXES) {
      const { node, left, level } = waiting.shift();
      depth = Math.max(depth, level + 1);
      boxes.push(box(node, left, level, root));
      let start = left;
      for (const child of [...node.children.values()].sort((a, b) => b.bytes - a.bytes)) {
        if (child.bytes / root.bytes >= LEAST_SHARE) waiting.push({ node: child, left: start, level: level + 1 });
        start += child.bytes;
      }
    }
    picture.style.height = `${depth * ROW}px`;
    picture.replaceChildren(...boxes);
    note.textContent = root === tree ? describe(tree) : `${describe(root)} · click it again for everything`;
  }

  function box(node, left, level, root) {
    return make("button", {
      type: "button",
      class: node.isOwn ? "own" : undefined,
      title: describe(node),
      style: { left: `${(100 * left) / root.bytes}%`, width: `calc(${(100 * node.bytes) / root.bytes}% - 1px)`, top: `${level * ROW}px` },
      onclick: () => show(node === root ? tree : node),
      onfocus: () => { note.textContent = describe(node); },
      onmouseenter: () => { note.textContent = describe(node); },
    }, node.name || "?");
  }

  if (tree.bytes > 0) show(tree);
  else picture.replaceChildren(make("p", { class: "none" }, "Nothing is alive here."));
}
