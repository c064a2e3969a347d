"""The Python blocks of the guide, run as they stand."""

import gc
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks():
    for page in sorted((ROOT / "docs" / "guide").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        for block in BLOCK.finditer(text):
            line = text.count("\n", 0, block.start(1))
            yield pytest.param(page, line, block.group(1), id=f"{page.stem}:{line + 1}")


@pytest.mark.parametrize(("page", "line", "source"), list(blocks()))
def test_a_block_of_the_guide(page, line, source):
    # Blocks count bytes: what other tests left in cycles must not go while they do.
    gc.collect()
    # Blank lines in front, so that a failure names the line of the page.
    exec(compile("\n" * line + source, str(page), "exec"), {"__name__": "guide"})


def test_the_guide_has_blocks():
    assert len(list(blocks())) >= 10
