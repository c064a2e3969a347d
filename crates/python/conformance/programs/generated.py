"""Files that programs read, made up: each function writes some of them into the folder that a program starts in. They use generators
of their own, so that all runs find the same files and no draw of the program is moved."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy

WORDS = "the a sea ship line hull load deep water mark wind sail port crew mate hold rope deck storm star north tide wave salt".split()
WORDS += ["gale", "oar"]


def _sentences(count: int, seed: int) -> list[str]:
    """Sentences in which each word leads to a few others, so that there is something to learn."""
    random = numpy.random.RandomState(seed)
    following = numpy.random.RandomState(0).randint(0, len(WORDS), (len(WORDS), 3))
    lines = []
    for _ in range(count):
        word, line = random.randint(len(WORDS)), []
        for _ in range(random.randint(4, 12)):
            line.append(WORDS[word])
            word = following[word, random.randint(3)]
        lines.append(" ".join(line))
    return lines


def text_file() -> None:
    """A text of characters."""
    # Capitals and signs: a program may begin its own text with them.
    text = "\n".join(f"{line.capitalize()}{'!,.?'[at % 4]}" for at, line in enumerate(_sentences(2000, 1)))
    Path("input.txt").write_text(text + "\n")


def corpus() -> None:
    """Words in three parts, as language models read them. An epoch is longer than the steps that are compared."""
    for part, (count, seed) in {"train": (6000, 1), "valid": (300, 2), "test": (300, 3)}.items():
        path = Path("data/generated") / f"{part}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(_sentences(count, seed)) + "\n")


def character_ids() -> None:
    """A text as numbers of its characters, with their names."""
    folder = Path("data/generated")
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(_sentences(2000, 1))
    names = sorted(set(text))
    number = {name: at for at, name in enumerate(names)}
    ids = numpy.array([number[one] for one in text], dtype=numpy.uint16)
    ids[: len(ids) * 9 // 10].tofile(folder / "train.bin")
    ids[len(ids) * 9 // 10 :].tofile(folder / "val.bin")
    with (folder / "meta.pkl").open("wb") as file:
        pickle.dump({"vocab_size": len(names), "itos": dict(enumerate(names)), "stoi": number}, file)


def citations() -> None:
    """A graph in the form of Cora: papers with words and a class, and who cites whom, mostly within a class."""
    random = numpy.random.RandomState(3)
    papers, words, classes = 520, 60, 7
    labels = random.randint(0, classes, papers)
    likely = random.uniform(0, 0.5, (classes, words))
    lines = []
    for paper in range(papers):
        has = (random.uniform(0, 1, words) < likely[labels[paper]]).astype(int)
        lines.append("\t".join([str(1000 + paper), *map(str, has), f"Class_{labels[paper]}"]))
    pairs = set()
    while len(pairs) < 1500:
        one, other = random.randint(0, papers, 2)
        if one != other and (labels[one] == labels[other] or random.uniform() < 0.1):
            pairs.add((1000 + one, 1000 + other))
    # Where programs look for it.
    for folder in (Path("cora"), Path("data/cora")):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cora.content").write_text("\n".join(lines) + "\n")
        (folder / "cora.cites").write_text("".join(f"{one}\t{other}\n" for one, other in sorted(pairs)))


def write(names: list[str]) -> None:
    known: dict[str, Any] = globals()
    for name in names:
        known[name]()
