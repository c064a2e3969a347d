"""A part of a block as a script: its lines where the document has them, above them one that asks the prelude for what they leave
undefined, below them calls of what they define (`calls.py`)."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

import names
from blocks import Block, Part
from calls import CALLS, CALLS_OF_PARTS, EITHER, MEANS, MISTAKES

# What brings data to a device.
MOVES = re.compile(r"\.cuda\(|\.to\((?:device|self\.device|'cuda'|\"cuda)")
# How a text that names a GPU names the CPU instead.
ON_CPU = [
    (re.compile(r"\.cuda\((?=[^)])"), '.to("cpu", '),
    (re.compile(r"\.cuda\(\)"), '.to("cpu")'),
    (re.compile(r"""(['"])cuda(?::0)?\1"""), '"cpu"'),
]


@dataclass(frozen=True)
class Script:
    """What runs: a name, the whole text, the first and last line that are the document's, and whether it names a GPU."""

    name: str
    kind: str
    text: str
    first: int
    last: int
    says_cuda: bool

    def on_cpu(self) -> str:
        """The text with every device replaced by the CPU; `torch.cuda` is left alone."""
        text = self.text
        for pattern, instead in ON_CPU:
            text = pattern.sub(instead, text)
        return text


def scripts(block: Block) -> list[Script]:
    """The scripts of a block: one for a part, two where a name may be either of two things."""
    if block.only_comments:
        return []
    found = []
    for part in block.parts():
        found.append(_script(block, part, MEANS.get(block.name, {}), ""))
        if block.name in EITHER:
            also = EITHER[block.name]
            found.append(_script(block, part, also, "".join(f" with {name}" for name in also.values())))
    return found


def _script(block: Block, part: Part, means: dict[str, str], also: str) -> Script:
    kept = {number for first, last in part.ranges for number in range(first, last + 1)}
    lines = [line if number in kept else "" for number, line in enumerate(block.lines, block.line)]
    marked = part.ranges[-1][0]
    name = f"{block.document}:{marked}"
    calls = CALLS_OF_PARTS.get(name) or CALLS.get(block.name, [])
    body = "\n".join([*lines, "", *calls]) + "\n"
    wanted = [word for word in names.undefined(body) if word not in MISTAKES]
    asked = " ".join(f"{word}={means[word]}" if word in means else word for word in wanted)
    models, data = places("\n".join([*block.lines, *CALLS.get(block.name, [])]))
    first = f"import prelude; globals().update(prelude.given({asked!r}, {models!r}, {data!r}))"
    text = first + "\n" * (block.line - 1) + body
    return Script(name + also, part.name, text, block.line, block.last, models == "cuda")


def places(text: str) -> tuple[str, str]:
    """Where models and data of the prelude lie: with a GPU's block on the GPU, but on the host what the block moves itself."""
    if "cuda" not in text.lower():
        return "cpu", "cpu"
    return "cuda", "cpu" if MOVES.search(text) else "cuda"


def defined(tree: ast.Module) -> list[str]:
    """Functions and classes that a text defines, without methods that Python itself calls."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    return [node.name for node in ast.walk(tree) if isinstance(node, kinds) and not node.name.startswith("__")]
