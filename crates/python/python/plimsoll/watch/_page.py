"""A run's findings as one HTML page, light and dark, without scripts and without anything to load. It computes nothing;
the words are those of `_render.py`."""

from __future__ import annotations

from typing import Any

from ._findings import Finding
from ._levels import meaning
from ._render import NOT_COUNTED, amount, levels_of, notes, size

_STYLE = """
:root { color-scheme: light dark; --ink: #1b2733; --paper: #fbfaf7; --line: #d8d5cc; --bar: #3b7ea1; --bad: #b3402a; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e6e8; --paper: #14191f; --line: #37414b; --bar: #6bb0d2; --bad: #ee8b73; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 60rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; }
article { border-left: 4px solid var(--bar); padding: 0.1rem 1rem; margin: 1rem 0; }
article.leak { border-color: var(--bad); }
article h2 { font-size: 1.1rem; margin: 0.4rem 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.1rem 1rem; margin: 0.4rem 0; }
dt { opacity: 0.75; }
dd { margin: 0; overflow-wrap: anywhere; }
code { font-family: ui-monospace, monospace; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
caption { text-align: left; font-weight: 600; }
th, td { text-align: left; padding: 0.15rem 0.6rem 0.15rem 0; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
td.number, th.number { text-align: right; white-space: nowrap; }
"""

_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})


def escape(text: str) -> str:
    """Not Python's `html`: it is imported late, when a program may have a module of that name."""
    return text.translate(_ESCAPED)


def _finding(finding: Finding, is_final: bool) -> str:
    is_leak = finding.is_verdict and not finding.is_note
    says = ("grows" if is_leak else "note: grew") if is_final else "growing so far:"
    rows = [
        ("line", ", ".join(f"<code>{escape(line)}</code>" for line in finding.lines) or escape(finding.line)),
        ("kind", escape(finding.kind)),
        ("held by", f"<code>{escape(finding.held_by)}</code>"),
        *(("and by", f"<code>{escape(words)}</code>") for words, _ in finding.also_held_by),
        *([("made in", escape(finding.phase))] if finding.phase else []),
        ("cause", escape(finding.cause)),
        ("remedy", escape(finding.remedy)),
        *([("note", NOT_COUNTED)] if finding.is_note else []),
    ]
    facts = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows)
    heading = f"{says} {amount(finding)}"
    return f'<article class="{"leak" if is_leak else "note"}"><h2>{heading}</h2><dl>{facts}</dl></article>'


def _table(caption: str, head: list[str], rows: list[list[str]]) -> str:
    """The first column is text, the rest of a row is numbers but for a column named in words at the end."""
    if not rows:
        return ""

    def cells(tag: str, row: list[str]) -> str:
        return "".join(f'<{tag}{" class=number" if 0 < at < 3 else ""}>{escape(one)}</{tag}>' for at, one in enumerate(row))

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><tr>{cells('th', head)}</tr>{body}</table>"


def page(session: Any, is_final: bool = True) -> str:
    """The whole page."""
    findings = session.findings
    leaks = [finding for finding in findings if finding.is_verdict and not finding.is_note]
    outcome = f"{len(leaks)} finding{'s' if len(leaks) != 1 else ''}" if is_final else f"{len(findings)} growing so far"
    epochs = f" in {session.steps.epochs} epochs" if session.steps.epochs else ""
    title = f"watch: {session.steps.told} steps{epochs}, counted by {session.steps.counted_by}; {outcome}"
    ordered = leaks + [finding for finding in findings if finding not in leaks]
    parts = [_finding(finding, is_final) for finding in ordered]
    grown = [
        [place, ", ".join(f"{name} {size(each)}" for name, each in of.items()), "", meaning(set(of))]
        for place, of in levels_of(session).items()
    ]
    parts.append(_table("Which level grows, a step", ["of", "level", "", "that is"], grown))
    phases = [[one.name, _signed(one.change_bytes), _signed(one.growth_bytes)] for one in session.phase_table]
    parts.append(_table("Phases of a step", ["phase", "changes by", "growth a step, at its end"], phases))
    filled = [[one.held_by, size(one.bytes), str(one.storages), f"{one.kind}, {one.line or 'line not noted'}"]
              for one in session.fillings]  # fmt: skip
    parts.append(_table("Out of memory: what was alive", ["held by", "bytes", "storages", "kind and line"], filled))
    said = "".join(f"<li>{escape(note)}</li>" for note in notes(session, is_final))
    parts.append(f"<ul>{said}</ul>" if said else "")
    share = session.cost_seconds / session.watched_seconds if session.watched_seconds else 0.0
    parts.append(f"<p>The watch took {session.cost_seconds:.2f} s, {share:.0%} of the time.</p>")
    head = f'<meta charset="utf-8">\n<meta name="viewport" content="width=device-width">\n<title>{escape(title)}</title>'
    body = "\n".join(part for part in parts if part)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n<style>{_STYLE}</style>\n</head>\n'
        f"<body>\n<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def _signed(count: float) -> str:
    return ("+" if count >= 0 else "-") + size(abs(count))
