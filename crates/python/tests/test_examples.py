"""The programs of `examples/python`: they learn, their bytes stand still, nothing is left, and a dry run foretells the peak."""

import gc
import importlib.util
import os
import pathlib
import re
import time

import plimsoll as pm
import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "examples" / "python"
# How many steps to run, and what share of the first losses the last ones may be.
EXAMPLES = {
    "mlp": (100, 0.3),
    "cnn": (40, 0.5),
    "lstm": (60, 0.05),
    "gpt": (40, 0.8),
    "gan": (150, 0.5),
    "dqn": (150, 0.1),
}

# Less work a step where a step is slow, and at most 5 ms of it for long runs.
SMALLER = {"gpt": {"batch": 4}, "cnn": {"batch": 16}}
SMALLEST = {
    "gpt": {"context": 8, "width": 16, "heads": 2, "batch": 2},
    "cnn": {"batch": 4},
    "lstm": {"batch": 4},
}
# How long bytes are watched: `PLIMSOLL_STEPS=10000 pytest -s -k stand_still` for long.
STEPS = int(os.environ.get("PLIMSOLL_STEPS", "60"))


def example(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_tested():
    assert sorted(path.stem for path in FOLDER.glob("*.py")) == sorted(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_learns_and_leaves_nothing(name, capsys):
    steps, share = EXAMPLES[name]
    gc.collect()
    before = pm.memory_allocated("cpu")
    losses = example(name).main(["--steps", str(steps)])
    assert len(losses) == steps
    assert sum(losses[-5:]) < share * sum(losses[:5])
    said = capsys.readouterr().out
    assert f"{losses[0]:.4f} -> {losses[-1]:.4f}" in said
    for kind in ("parameter", "gradient", "optimizer state", "input"):
        assert re.search(rf"^ *{kind}  +[\d,]+ bytes at the peak$", said, re.MULTILINE), kind
    assert ("in use after step 100: " in said) == (steps >= 100)
    gc.collect()
    assert pm.memory_allocated("cpu") == before


@pytest.mark.parametrize("name", EXAMPLES)
def test_its_bytes_stand_still(name):
    gc.collect()
    device, before = pm.private_cpu(), pm.memory_allocated("cpu")
    training = example(name).Training(device, **(SMALLEST if STEPS > 1000 else SMALLER).get(name, {}))
    settled, began = min(STEPS // 3, 100), time.perf_counter()
    for step in range(STEPS):
        training.step()
        now = pm.memory_allocated(device)
        if step + 1 == settled:
            held = now
        assert step < settled or now == held, f"step {step + 1} holds {now} bytes, step {settled} held {held}"
    took = 1000 * (time.perf_counter() - began) / STEPS
    kinds = pm.memory_by_kind(device)
    assert kinds["parameter"] > 0 and kinds["optimizer state"] > 0
    del training
    gc.collect()
    left = pm.memory_allocated(device), pm.memory_allocated("cpu") - before
    print(f"{name}: {held:,} bytes after step {settled} and {now:,} after {STEPS:,}, {left} left; {took:.2f} ms a step")
    assert left == (0, 0)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_dry_run_foretells_its_peak(name):
    module = example(name)

    def peaks(device):
        training = module.Training(device)
        for _ in range(3):
            training.step()
        return pm.max_memory_allocated(device), pm.max_memory_reserved(device), pm.memory_allocated(device)

    real = pm.private_cpu()
    assert peaks(pm.dry(real)) == peaks(real)


def test_the_replay_buffer_is_written_in_place():
    module = example("dqn")
    device = pm.private_cpu()
    replay = module.Replay(8, device)
    held, address = pm.memory_allocated(device), replay.states.data_ptr()
    for number in range(5):  # 20 rows into 8
        one = pm.full((4, 1), float(number), device=device)
        replay.write(pm.cat([one, one], 1), one.long(), -one, pm.cat([one, one + 1], 1))
    del one
    assert (pm.memory_allocated(device), replay.states.data_ptr()) == (held, address)
    assert replay.states[:, 0].tolist() == [4.0] * 4 + [3.0] * 4  # the newest over the oldest
    state, action, reward, next_state = replay.sample(100)
    assert set(action.flatten().tolist()) == {3, 4}
    assert reward.flatten().tolist() == [-float(a) for a in action.flatten().tolist()]
    assert (next_state[:, 1] - state[:, 1]).tolist() == [1.0] * 100
