"""The Python blocks of five documents about PyTorch's memory, run as they stand under `plimsoll run`, on the CPU and on what
answers as `cuda`: each part raises what PyTorch raised, at the same line, and nothing otherwise. `cargo xtask conformance
documents FOLDER --record` wrote down the blocks and PyTorch's answers; the table is `docs/documents.md`."""

import ast
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).parent
FOLDER = HERE.parent / "conformance" / "documents"
GUIDE = HERE.parents[2] / "docs" / "guide"
sys.path.append(str(FOLDER))

import claims  # noqa: E402
import names  # noqa: E402
import ours  # noqa: E402
import recorded  # noqa: E402
from blocks import Block  # noqa: E402
from script import defined, scripts  # noqa: E402

VERSION, BLOCKS, ANSWERS = recorded.read(HERE / "documents" / "blocks.json")
RUNS = [(script.name, where) for script, where in recorded.runs(BLOCKS)]


@pytest.fixture(scope="module")
def rows():
    """Every run, several at a time."""
    return {(row["name"], row["where"]): row for row in recorded.compared(BLOCKS, ANSWERS)}


@pytest.mark.parametrize("run", RUNS, ids=" on ".join)
def test_a_part_does_what_it_does_in_pytorch(rows, run):
    assert rows[run]["wrong"] is None


def test_nothing_is_left_out():
    assert (len(BLOCKS), len(ANSWERS), len(RUNS)) == (92, 123, 176)
    assert [block.name for block in BLOCKS if block.only_comments] == ["000:637", "000:701"]
    assert {script.name for block in BLOCKS for script in scripts(block)} == set(ANSWERS)


def test_everything_that_a_block_defines_is_called():
    for block in BLOCKS:
        for part in scripts(block):
            tree = ast.parse(part.text)
            used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            used |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
            # A module's `forward` runs when the module is called.
            assert set(defined(tree)) <= used | {"forward"}, part.name


def test_mistakes_of_the_documents_stay_undefined():
    text = next(script.text for block in BLOCKS for script in scripts(block) if block.name == "002:431")
    assert "batch_idx" in names.undefined(text) and "batch_idx" not in text.split("\n")[0]
    assert ANSWERS["002:431"]["cpu"] == ["NameError", 451]


def test_the_prelude_gives_only_what_a_block_leaves_undefined():
    for block in BLOCKS:
        for script in scripts(block):
            asked = script.text.split("\n")[0].split("'")[1].split()
            given = {word.partition("=")[0] for word in asked}
            assert given <= set(names.undefined("\n".join(script.text.split("\n")[1:]))), script.name


def test_every_block_says_what_is_so_of_memory_and_where_it_is_asserted():
    assert set(claims.CLAIMS) == {block.name for block in BLOCKS}
    for name, claim in claims.CLAIMS.items():
        for where in claim.where:
            page, _, section = where.partition("#")
            file, _, test = where.partition("::")
            if section:
                assert f"\n## {section}\n" in (GUIDE / page).read_text(encoding="utf-8"), f"{name}: {where}"
            else:
                assert f"\ndef {test}(" in (HERE / file).read_text(encoding="utf-8"), f"{name}: {where}"


# Bytes of the documents' own functions, asserted inside `plimsoll run`.

HELD = """
def held():
    torch.cuda.synchronize()
    return torch.cuda.memory_allocated()

def square():
    return torch.randn(1024, 1024, device="cuda")
"""

CLEANUPS = """
ONE = 4 << 20
for clean in (aggressive_cleanup, typical_cleanup):
    mine = square()
    clean(mine)
    assert held() == ONE  # the caller's own name keeps it
    del mine
    assert held() == 0
    clean(square())
    assert held() == 0  # as it would be without
assert typical_cleanup(torch.ones(1, device="cuda")) == 1.0

torch.cuda.empty_cache()
assert torch.cuda.memory_reserved() == 0
typical_cleanup(square())
reserved = torch.cuda.memory_reserved()
assert reserved >= ONE  # it stays in the cache
aggressive_cleanup(mine := square())
assert torch.cuda.memory_reserved() == reserved  # in use: nothing to give back
del mine
"""

BUFFERS = """
ONE = 64 * 1024 * 4
batches = [torch.randn(64, 1024) for _ in range(6)]
for number, batch in enumerate(DoubleBufferedDataLoader(batches, "cuda")):
    assert held() == (2 if number < 5 else 1) * ONE, (number, held())
    assert batch.is_cuda and torch.equal(batch.cpu(), batches[number])
del batch
assert held() == 0 and torch.cuda.max_memory_allocated() <= 3 * ONE
"""


def test_the_documents_cleanups_free_nothing_that_the_caller_holds():
    assert_in_a_run("002:383", CLEANUPS)


def test_the_documents_double_buffer_holds_two_batches():
    assert_in_a_run("002:287", BUFFERS)


def assert_in_a_run(block, check):
    """The functions and classes of a block, and what is so of them."""
    tree = ast.parse(next(one.text for one in BLOCKS if one.name == block))
    tree.body = [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    answer = ours.answer("import torch\n" + HELD + ast.unparse(tree) + check, "cuda")
    assert answer["raises"] is None, answer["stderr"]


def test_a_wrong_answer_is_seen():
    block = Block("000", 9, ["x = torch.ones(3)", "y = {}[x]", "print('never')"])
    (script,) = scripts(block)
    own = ours.answer(script.text, "cpu")
    right = {"cpu": ["KeyError", 10], "deprecated": []}
    assert ours.difference(right, own, "cpu") is None
    for wrong in (None, ["KeyError", 9], ["RuntimeError", 10]):
        assert ours.difference({**right, "cpu": wrong}, own, "cpu") is not None
    assert ours.difference({**right, "deprecated": [[9, "UserWarning"]]}, own, "cpu") is not None
    assert ours.difference({**right, "prints": "never\n"}, own, "cpu") is not None
