"""The page of the documents' blocks, written from a run: block by block what PyTorch raises, whether Plimsoll does the same, and
what is so of the memory that it speaks of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from blocks import Block
from claims import CLAIMS, Claim
from script import scripts

PREFACE = """# The documents, block by block

Written by `cargo xtask conformance documents FOLDER --write-docs`; do not edit. Five documents about PyTorch's memory have
{blocks} blocks of Python. Each runs under `plimsoll run` as it stands; a block that marks parts as wrong or right, part by part:
{scripts} scripts in all. A prelude defines the names that a block leaves undefined (a model, data, a loss), functions and
classes are called, and names that are mistakes of a document stay undefined.

PyTorch {version} says what each script raises, at which line, where it says that something is deprecated, and what it prints
if that does not hang on chance. PyTorch had no GPU here: where a block names one, PyTorch ran it with the CPU instead and its
calls of `torch.cuda` did nothing; where tensors of two devices meet its fake tensors told. Plimsoll ran such a block so on the
CPU, and as it stands on the stand-in that answers as `cuda`.

{runs} runs, of which {same} are as PyTorch.{card} In CI the same runs without PyTorch (`crates/python/tests/test_documents.py`).

A block is named by its document and its first line, a part by the line of its mark. "as PyTorch" is for all runs of the row.
"""

# What a run on a card said, beside the blocks that were recorded for CI.
CARD = Path(__file__).resolve().parents[2] / "tests" / "documents" / "card.json"


def write(path: Path, version: str, blocks: list[Block], answers: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """Replaces the page."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_name.setdefault(row["name"], []).append(row)
    same = sum(row["wrong"] is None for row in rows)
    head = PREFACE.format(blocks=len(blocks), scripts=len(answers), version=version, runs=len(rows), same=same, card=_card())
    lines = [head]
    for document in sorted({block.document for block in blocks}):
        lines += [f"## {document}", "", "| block | part | PyTorch | Plimsoll | of memory |", "| --- | --- | --- | --- | --- |"]
        for block in blocks:
            if block.document == document:
                lines += _rows(block, answers, by_name)
        lines.append("")
    path.write_text("\n".join(lines))


def _rows(block: Block, answers: dict[str, Any], by_name: dict[str, list[dict[str, Any]]]) -> list[str]:
    claim = _claim(CLAIMS[block.name])
    found = scripts(block)
    if not found:
        return [f"| {block.name} | comments only | | | {claim} |"]
    lines = []
    for place, script in enumerate(found):
        wrong = [f"{row['where']}: {row['wrong']}" for row in by_name[script.name] if row["wrong"]]
        said = "; ".join(wrong).replace("|", "\\|") or "as PyTorch"
        part = script.kind if script.kind == "whole" else f"{script.kind}, {script.name.partition(':')[2]}"
        name, memory = (block.name, claim) if place == 0 else ("", "")
        lines.append(f"| {name} | {part} | {_told(answers[script.name])} | {said} | {memory} |")
    return lines


def _told(answer: dict[str, Any]) -> str:
    cpu, cuda = answer["cpu"], answer.get("cuda", answer["cpu"])
    said = _raised(cpu) if cpu == cuda else f"CPU: {_raised(cpu)}; GPU: {_raised(cuda)}"
    return said + "".join(f"; {kind}, {line}" for line, kind in answer["deprecated"])


def _raised(raises: list[Any] | None) -> str:
    return "runs" if raises is None else f"{raises[0]}, {raises[1]}"


def _claim(claim: Claim) -> str:
    places = []
    for where in claim.where:
        page, _, section = where.partition("#")
        file, _, test = where.partition("::")
        places.append(f"[{section}](guide/{page}#{_anchor(section)})" if section else f"`{file}` `{test}`")
    return f"{claim.truth}: {', '.join(places)}"


def _anchor(section: str) -> str:
    return "".join(letter for letter in section.lower().replace(" ", "-") if letter.isalnum() or letter == "-")


def _card() -> str:
    if not CARD.exists():
        return ""
    told = json.loads(CARD.read_text())
    same = sum(row["wrong"] is None for row in told["rows"])
    return f" On a {told['device']}, the real card, {same} of {len(told['rows'])} are ({told['date']})."
