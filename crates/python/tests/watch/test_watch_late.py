"""Leaks that begin in the steady state, where one step in many is noted: each is named before 100 steps are over,
whenever it begins. And while nothing grows, few steps are noted."""

import json

import pytest

torch = pytest.importorskip("torch")

import runner  # noqa: E402

watch = runner.load()


def train(steps, keep=lambda step, out, loss: None):
    torch.manual_seed(1)
    model = torch.nn.Linear(32, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(steps):
        out = model(torch.randn(32, 32))
        loss = (out * 2).tanh().exp().sqrt().pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        keep(step, out, loss)


@pytest.mark.parametrize("begins", [124, 131, 150, 196, 197, 240, 301])
@pytest.mark.parametrize("kind", ["value", "graph nodes on the host"])
def test_a_late_leak_is_named_before_100_steps_are_over(kind, begins):
    kept = []

    def keep(step, out, loss):
        if step >= begins:
            kept.append(out.detach() if kind == "value" else loss)

    with watch() as watched:
        train(begins + 100, keep)
    (finding,) = json.loads(watched.json())["findings"]
    assert (finding["kind"], finding["verdict"]) == (kind, True)
    assert finding["first_told_at_step"] <= begins + 100


def test_in_the_steady_state_one_step_in_73_is_noted():
    with watch() as watched:
        train(140 + 10 * 73)
        making = watched._session.making
        assert len(making.noted) == 4 * 6 + 11
        assert making.rows == {}
    assert watched.findings == []


def test_a_buffer_that_fills_and_lets_go_is_no_leak_later_either():
    kept = []

    def keep(step, out, loss):
        kept.append(out.detach())
        del kept[:-120]

    with watch() as watched:
        train(600, keep)
    assert watched.verdicts == []
