"""What a report also tells: the phases of a step, which level of memory grows, and the page."""

import ctypes
import html.parser
import json

import pytest

torch = pytest.importorskip("torch")

import runner  # noqa: E402

runner.load()

from plimsoll_watch._levels import Series, bytes_of_holes, meaning  # noqa: E402
from plimsoll_watch._render import notes, size  # noqa: E402
from plimsoll_watch._session import Session  # noqa: E402

TRAINS = """
import torch
model = torch.nn.Linear(256, 256)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
kept = []
for step in range(40):
    optimizer.zero_grad()
    out = model(torch.ones(64, 256))
    out.square().mean().backward()
    kept.append({})
    optimizer.step()
"""


def run(tmp_path, kept, *options):
    program = tmp_path / "<trains> & keeps.py"
    program.write_text(TRAINS.format(kept))
    return runner.watched(program, *options)


@pytest.mark.parametrize(
    ("kept", "phase", "each"),
    [
        ("out.detach()", "forward", 64 * 256 * 4),
        ("model.weight.grad", "backward", 256 * 256 * 4),
        ("optimizer.register_step_post_hook(lambda *_: kept.append(torch.ones(1024)))", "forward", 0),
    ],
)
def test_phases(tmp_path, kept, phase, each):
    report = run(tmp_path, kept, "--phases").report
    phases = {one["name"]: one for one in report["phases"]}
    assert list(phases) == ["forward", "backward", "optimizer step"]
    if each:
        (finding,) = report["findings"]
        assert (finding["phase"], finding["bytes_per_step"]) == (phase, each)
        assert [one["growth_bytes"] for one in phases.values()] == [each] * 3
        # What a step changes in all is what it grows by; only between the phases it may differ.
        assert sum(one["change_bytes"] for one in phases.values()) == pytest.approx(each, abs=16)
    else:
        # A hook more in every step: what the hooks keep is made in the optimizer's step.
        assert {finding["phase"] for finding in report["findings"]} == {"optimizer step"}


def test_without_the_option_there_are_no_phases(tmp_path):
    report = run(tmp_path, "out.detach()").report
    assert report["phases"] == [] and report["findings"][0]["phase"] == ""


def test_backward_is_as_it_was():
    before = torch.autograd.backward, torch.autograd.grad
    session = Session()
    session.follow_phases()
    session.start()
    assert torch.autograd.backward is not before[0] and torch.autograd.grad is not before[1]
    session.stop()
    assert (torch.autograd.backward, torch.autograd.grad) == before


def test_a_level_grows_if_every_third_of_the_run_rises():
    def grown(levels):
        now = [0]
        series = Series(lambda: now[0])
        for step, now[0] in enumerate(levels):
            series.sample(step)
        return series.growth_per_step()

    mib = 1 << 20
    assert grown([at * mib for at in range(40)]) == mib
    # A cache that fills, a single jump and noise do not.
    assert grown([min(at, 20) * mib for at in range(40)]) == 0
    assert grown([(at >= 20) * 64 * mib for at in range(40)]) == 0
    assert grown([at % 2 * 64 * mib for at in range(40)]) == 0
    # Thinned out, a long run tells the same.
    assert grown([at * mib for at in range(400)]) == pytest.approx(mib, rel=0.01)
    assert "tensors are kept" in meaning({"allocated", "reserved", "peak"})
    assert "fragmentation" in meaning({"reserved"}) and "longer" in meaning({"peak", "reserved"})


def test_resident_growth_is_told(tmp_path):
    report = run(tmp_path, "torch.ones(1 << 20)").report
    assert report["levels_growing"]["process"]["resident"] == pytest.approx(4 << 20, rel=0.3)


def test_what_is_no_tensor_may_have_been_made_in_steps_that_were_not_noted(tmp_path):
    """Both are unseen: a process that grows by either says so of both."""
    report = run(tmp_path, "b'x' * (4 << 20)").report
    (note,) = [note for note in report["notes"] if "tensors explain" in note]
    assert "the rest is made in steps that were not noted, or not tensors (Python objects, " in note


@pytest.mark.parametrize("holes, is_rest_told", [(40 << 10, False), (8 << 10, True), (0, True)])
def test_holes_in_the_heap_are_told(holes, is_rest_told):
    def rising(each):
        now = [0]
        series = Series(lambda: now[0], least_bytes=1)
        for step in range(4096):
            now[0] = each * step
            series.sample(step)
        return series

    session = Session()
    session.levels.resident, session.levels.holes = rising(48 << 10), rising(holes)
    (note,) = [note for note in notes(session, False) if "tensors explain" in note]
    told = f" and holes in its heap {size(holes)}: what is kept lies between what was freed (fragmentation)"
    # Below what is told of any level.
    assert (told in note) is (holes > 16 << 10) and ("the rest is made in" in note) is is_rest_told


@pytest.mark.skipif(bytes_of_holes() is None, reason="the C library does not tell what its heap has free")
def test_a_hole_is_what_is_free_between_what_is_kept():
    library = ctypes.CDLL(None)
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    blocks = [library.malloc(100_000) for _ in range(20)]
    before = bytes_of_holes()
    for block in blocks[::2]:
        library.free(block)
    assert bytes_of_holes() - before == pytest.approx(10 * 100_000, rel=0.1)
    for block in blocks[1::2]:
        library.free(block)


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_the_page_is_whole_and_cannot_be_broken(tmp_path):
    program, report = tmp_path / "<script>.py", tmp_path / "page"
    program.write_text(TRAINS.format("out.detach()"))
    ran = runner.forked(
        lambda _: runner.load() and __import__("plimsoll_watch._command")._command.main(
            ["--format", "html", "--phases", "--output", str(report), str(program)]
        )
    )  # fmt: skip
    assert ran.status == 0, ran.errors
    page = Page(report.read_text())
    assert page.open == [] and page.tags.count("article") == 1 and "script" not in page.tags
    said = " ".join(page.text)
    assert "<script>.py:8" in said and "grows 64.0 KiB a step (1 storage)" in said and "optimizer step" in said
    assert "prefers-color-scheme: dark" in report.read_text()


def test_an_excluded_name_on_the_command_line(tmp_path):
    ran = run(tmp_path, "out.detach()", "--fail", "--exclude", "kept")
    assert (ran.status, json.dumps(ran.report["findings"])) == (0, "[]")


@pytest.mark.parametrize("steps", [4, 40])
def test_a_run_that_is_too_short_says_so_to_programs_too(tmp_path, steps):
    program = tmp_path / "short.py"
    program.write_text(TRAINS.format("0").replace("range(40)", f"range({steps})"))
    report = runner.watched(program).report
    said = [note for note in report["notes"] if note.startswith("too few steps to judge; 10 are needed")]
    assert (len(said), report["steps"]) == (steps < 10, steps)
