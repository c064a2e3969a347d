"""The harness that runs other people's programs (`conformance/programs`), on programs of our own: Plimsoll's draws are written down and
replayed, other draws are refused, and losses are judged."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HARNESS = Path(__file__).resolve().parent.parent / "conformance" / "programs"
sys.path.insert(0, str(HARNESS))
import judge  # noqa: E402

sys.path.remove(str(HARNESS))

PROGRAM = """
import sys
import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split

sizes = [int(size) for size in sys.argv[1:]]
x = torch.rand(20, 3)
kept, _ = random_split(TensorDataset(x, x.sum(1)), [16, 4])
model = torch.nn.Sequential(torch.nn.Linear(3, sizes[0]), torch.nn.Dropout(0.5), torch.nn.Linear(sizes[0], 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(100):
    for inputs, targets in DataLoader(kept, batch_size=8, shuffle=True):
        optimizer.zero_grad()
        noise = torch.distributions.Normal(0.0, 0.1).sample((len(inputs), 3))
        F.mse_loss(model(inputs + noise)[:, 0], targets).backward()
        optimizer.step()
"""


def run(folder, replay, *arguments, text=PROGRAM, passes=12, seed=0):
    pytest.importorskip("numpy")
    program = folder / "program.py"
    program.write_text(f"import torch\ntorch.manual_seed({seed})\n{text}")
    order = {"side": "plimsoll", "threads": 1, "draws": str(folder / "draws"), "replay": replay, "program": str(program)}
    order |= {"arguments": arguments, "paths": [], "passes": passes, "unused": [], "data": []}
    (folder / "order.json").write_text(json.dumps(order))
    command = [sys.executable, str(HARNESS / "worker.py"), str(folder / "order.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "row.json").read_text())


def test_a_replay_has_the_draws_that_were_written_down(tmp_path):
    first = run(tmp_path, False, "4")
    assert (first["status"], len(first["losses"])) == ("ended", 12), first
    # Another seed alone would give other losses.
    again = run(tmp_path, True, "4", seed=1)
    assert again["losses"] == first["losses"] and again["draws"] == first["draws"]
    (tmp_path / "other").mkdir()
    assert run(tmp_path / "other", False, "4", seed=1)["losses"] != first["losses"]


def test_other_draws_are_refused(tmp_path):
    run(tmp_path, False, "4")
    wider = run(tmp_path, True, "5")
    assert wider["status"] == "failed" and "is Tensor.uniform_: float32[5, 3], and in PyTorch's run it is" in wider["words"], wider
    more = run(tmp_path, True, "4", passes=13)
    assert more["status"] == "failed" and "drew no more" in more["words"]


def test_draws_that_are_not_watched_are_noticed(tmp_path):
    text = "lstm = torch.nn.LSTM(2, 2, 2, dropout=0.5)\nfor _ in range(3):\n    lstm(torch.ones(4, 1, 2))[0].sum().backward()\n"
    noticed = run(tmp_path, False, text=text, passes=2)
    assert noticed["status"] == "failed" and "not recorded" in noticed["words"], noticed


def test_a_program_that_fails_says_why(tmp_path):
    failed = run(tmp_path, False, text="torch.vmap")
    assert failed["status"] == "failed" and "Plimsoll does not have torch.vmap" in failed["words"]
    assert "exit" not in run(tmp_path, False, text="raise SystemExit(0)")["words"]
    assert run(tmp_path, False, text="raise SystemExit(3)")["words"] == "the program ended with 3"


def row(here, second, old=None, passes=1):
    first = [1.0] * 60
    runs = {"first": first, "second": [1.0 + second] * 60, "here": [1.0] * 9 + [1.0 + off for off in here] + [1.0] * (51 - len(here))}
    runs |= {} if old is None else {"older pytorch": [1.0 + old] * 60}
    return {name: {"status": "ended", "words": "", "losses": losses} for name, losses in runs.items()} | {"passes": passes}


@pytest.mark.parametrize(
    ("here", "second", "old", "verdict"),
    [
        ([0.0, 9e-7], 0.0, None, "equal"),
        ([0.0, 9e-6], 5e-6, None, "equal"),
        ([0.0, 2e-5], 5e-6, None, "apart"),
        ([0.0, 2e-5], 5e-6, 1e-6, "apart"),
        ([0.0, 2e-5], 5e-6, 2e-5, "rounding"),
        ([2e-4], 1.0, 1.0, "apart"),
        ([float("nan")], 1.0, 1.0, "apart"),
    ],
)
def test_losses_are_judged_by_pytorchs_own_spread(here, second, old, verdict):
    assert judge.judged(row(here, second, old))["verdict"] == verdict


def test_what_pytorch_does_not_run_is_not_compared():
    broken = row([], 0.0)
    broken["first"] |= {"status": "failed", "words": "no such file"}
    assert judge.judged(broken) == {"verdict": "not compared", "reason": "PyTorch: no such file"}
    assert judge.judged(row([], 0.0, passes=2))["verdict"] == "not compared"
    fewer = row([], 0.0)
    fewer["here"]["losses"].pop()
    assert judge.judged(fewer)["verdict"] == "apart"
