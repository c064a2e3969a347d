// Colours, read from the style sheet so that they are written once, and the choice between light and dark.

let colours = {};

function readColours(meta) {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(`--${name}`).trim();
  colours = {
    kinds: meta.kinds.map((_, kind) => value(`kind-${kind}`)),
    sites: Array.from({ length: 11 }, (_, site) => value(`site-${site}`)),
    siteRest: value("site-rest"),
    ...Object.fromEntries(
      ["paper", "card", "ink", "soft", "faint", "line", "grid", "accent", "warn", "mark", "rest"].map((name) => [name, value(name)]),
    ),
  };
}

// Follows the system until the reader chooses. The choice lasts as long as the page: it stores nothing.
function followTheme(meta, redraw) {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  const button = byId("theme");
  const apply = () => {
    const theme = chosen ?? (system.matches ? "dark" : "light");
    document.documentElement.dataset.theme = theme;
    button.textContent = theme === "dark" ? "☀" : "☾";
    readColours(meta);
    redraw();
  };
  system.addEventListener("change", apply);
  button.addEventListener("click", () => {
    chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    apply();
  });
  apply();
}
