// Zoom by click or Enter, search with "/". Each box knows its place (data-x, data-w, data-d) in the whole drawing.
const WIDTH = 1200;
const boxes = [...document.querySelectorAll(".f")].map((g) => ({
  g,
  x: +g.dataset.x,
  w: +g.dataset.w,
  d: +g.dataset.d,
  rect: g.querySelector("rect"),
  text: g.querySelector("text"),
  full: g.querySelector("text").textContent,
}));

function zoom(to) {
  const scale = WIDTH / to.w;
  for (const box of boxes) {
    const inside = box.x >= to.x - 1e-3 && box.x + box.w <= to.x + to.w + 1e-3;
    const above = box.d < to.d && box.x <= to.x + 1e-3 && box.x + box.w >= to.x + to.w - 1e-3;
    box.g.style.display = inside || above ? "" : "none";
    const x = above ? 0 : (box.x - to.x) * scale;
    const w = above ? WIDTH : box.w * scale;
    box.rect.setAttribute("x", x);
    box.rect.setAttribute("width", Math.max(w - 0.3, 0.1));
    box.text.setAttribute("x", x + 3);
    const letters = Math.floor((w - 6) / 6.2);
    box.text.textContent = letters < 3 ? "" : box.full.length <= letters ? box.full : box.full.slice(0, letters - 1) + "…";
  }
}

for (const box of boxes) {
  box.g.addEventListener("click", () => zoom(box));
  box.g.addEventListener("keydown", (event) => event.key === "Enter" && zoom(box));
}
window.addEventListener("keydown", (event) => {
  if (event.key !== "/") return;
  event.preventDefault();
  const wanted = prompt("mark frames that contain") || "";
  for (const box of boxes) box.g.classList.toggle("m", wanted !== "" && box.full.includes(wanted));
});
if (boxes.length) zoom(boxes[0]);
