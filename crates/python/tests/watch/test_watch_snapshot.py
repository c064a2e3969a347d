"""The file for `plimsoll report` and `view`: every storage that a look sees, where it lies and how large it is, once,
with its line, kind, step and holder."""

import json
import pickle

import pytest

torch = pytest.importorskip("torch")

import runner  # noqa: E402

PROGRAM = """
import torch
kept = []
model = torch.nn.Linear(32, 32)
optimizer = torch.optim.Adam(model.parameters())
def main():
    for _ in range(30):
        out = model(torch.randn(32, 32))
        optimizer.zero_grad()
        out.sum().backward()
        optimizer.step()
        kept.append(out.detach())
main()
"""


def blocks_of(layout):
    return [block for segment in layout["segments"] for block in segment["blocks"]]


def holder_of(block):
    return next(frame["name"] for frame in block["frames"] if frame["filename"] == "plimsoll")


@pytest.mark.parametrize("name", ["lives.pickle", "lives.json"])
def test_the_command_writes_what_lived(tmp_path, name):
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    file = tmp_path / name
    ran = runner.watched(program, "--snapshot", str(file))
    assert (ran.status, ran.errors) == (0, "")
    layout = json.loads(file.read_text()) if name.endswith("json") else pickle.loads(file.read_bytes())
    blocks = blocks_of(layout)
    by_kind = {
        kind: sum(block["size"] for block in blocks if block.get("category") == kind)
        for kind in ("parameter", "gradient", "optimizer_state")
    }
    weights = (32 * 32 + 32) * 4
    # Two averages of each weight, and two numbers of steps.
    assert by_kind == {"parameter": weights, "gradient": weights, "optimizer_state": 2 * weights + 2 * 4}
    kept = [block for block in blocks if holder_of(block).startswith("held by global `kept` -> list of ")]
    assert 10 < len(kept) <= 30 and all(block["size"] == 32 * 32 * 4 for block in kept)
    made = [frame for block in kept for frame in block["frames"] if frame["filename"].endswith("train.py")]
    assert made and {(frame["name"], frame["line"]) for frame in made} == {("main", 8)}
    # No lines but those that were seen, and a step with each.
    assert len(made) == sum("step" in block for block in kept) < len(kept)
    assert layout["device_traces"] == [[]] and layout["plimsoll"] == {"devices": [{"name": "cpu"}]}


def test_segments_lie_apart_and_shared_bytes_are_told_once():
    watch = runner.load()
    array = torch.zeros(1000).numpy()
    whole, half = torch.from_numpy(array), torch.from_numpy(array[500:])
    with watch.watch() as watched:
        for _ in range(3):
            watched.step()
        layout = _written(watched)
    spans = sorted((segment["address"], segment["total_size"]) for segment in layout["segments"])
    assert all(start + size <= after for (start, size), (after, _) in zip(spans, spans[1:]))
    assert (whole.data_ptr(), 4000) in spans and (half.data_ptr(), 2000) not in spans


def _written(watched):
    import tempfile

    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        watched.snapshot(file.name)
        return json.load(file)


def test_what_an_error_left_is_told(tmp_path):
    program = tmp_path / "fails.py"
    program.write_text(PROGRAM.replace("kept.append", "last = torch.ones(77, 100); 1 / 0; kept.append"))
    file = tmp_path / "lives.json"
    ran = runner.watched(program, "--snapshot", str(file))
    assert ran.status == 1 and "ZeroDivisionError" in ran.errors
    (last,) = [block for block in blocks_of(json.loads(file.read_text())) if block["size"] == 77 * 100 * 4]
    assert holder_of(last) == "held by a kept frame's local `last` of main()"


def test_without_a_watch_there_is_nothing_to_write(tmp_path):
    watch = runner.load()
    with pytest.raises(RuntimeError, match="not begun"):
        watch.watch().snapshot(str(tmp_path / "lives.json"))
