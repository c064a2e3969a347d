"""The Python blocks of a folder of documents, and their parts: what a block marks as wrong or right, each with what stands before
the first mark. A part keeps its lines, so that an error names the document's line. `script.py` makes a script of it."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# A comment at the margin that marks what follows it.
MARK = re.compile(r"# *(?:❌|✅|⚠️|WRONG|CORRECT|BAD|GOOD|WARNING)\W*(.*)")
WRONG = re.compile(r"# *(?:❌|⚠️|WRONG|BAD|WARNING)")


@dataclass(frozen=True)
class Part:
    """Lines of a block that run by themselves, as ranges of the document's lines with both ends."""

    name: str
    ranges: list[list[int]]


@dataclass(frozen=True)
class Block:
    """One block: the first three letters of its document's name, its first line, its lines without their common margin."""

    document: str
    line: int
    lines: list[str]

    @property
    def name(self) -> str:
        return f"{self.document}:{self.line}"

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    @property
    def last(self) -> int:
        return self.line + len(self.lines) - 1

    @property
    def only_comments(self) -> bool:
        return all(not line.strip() or line.lstrip().startswith("#") for line in self.lines)

    def parts(self) -> list[Part]:
        """A part for every mark; the whole block where there is none."""
        marks = [number for number, line in enumerate(self.lines, self.line) if MARK.match(line)]
        if not marks:
            return [Part("whole", [[self.line, self.last]])]
        before = [[self.line, marks[0] - 1]] if marks[0] > self.line else []
        ends = [mark - 1 for mark in marks[1:]] + [self.last]
        return [Part(self._kind(mark), [*before, [mark, end]]) for mark, end in zip(marks, ends, strict=True)]

    def _kind(self, mark: int) -> str:
        return "wrong" if WRONG.match(self.lines[mark - self.line]) else "right"

    def written(self) -> dict[str, Any]:
        return {"document": self.document, "line": self.line, "lines": self.lines}


def read(folder: Path) -> list[Block]:
    """The blocks of every text file of the folder, in order."""
    return [block for path in sorted(folder.glob("*.txt")) for block in of_document(path.name[:3], path.read_text())]


def of_document(name: str, text: str) -> list[Block]:
    found, fence, began = [], None, 0
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        word = line.strip()
        if fence is None and word.startswith("```"):
            fence, began = word, number
        elif fence is not None and word == "```":
            if fence == "```python":
                inside = textwrap.dedent("\n".join(lines[began : number - 1])).split("\n")
                found.append(Block(name, began + 1, inside))
            fence = None
    return found
