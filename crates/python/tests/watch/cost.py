"""What the watch costs, printed: a step alone, a step in a window, a census, and a step over whole cycles of the
steady state, in the processor's time of one thread, for a tiny MLP and a transformer of 10 million parameters. A
measurement, not a test: `python cost.py`."""

import time

import torch

import runner

watch = runner.load()
from plimsoll_watch._census import Census  # noqa: E402
from plimsoll_watch._making import LONGEST_PAUSE, SAMPLE_STEPS  # noqa: E402
from plimsoll_watch._session import Session  # noqa: E402


def mlp():
    layers = [torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 128), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(128, 10))
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.randn(32, 64), torch.randint(0, 10, (32,))

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step, 40, 40


def transformer():
    width, tokens = 320, 4000
    layer = torch.nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
    body = torch.nn.TransformerEncoder(layer, 7, enable_nested_tensor=False)
    table, head = torch.nn.Embedding(tokens, width), torch.nn.Linear(width, tokens, bias=False)
    parameters = [*table.parameters(), *body.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters)
    x = torch.randint(0, tokens, (2, 64))

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(head(body(table(x))).flatten(0, 1), x.flatten()).backward()
        optimizer.step()

    return step, 3, 3


def seconds(step, count):
    began = time.thread_time()
    for _ in range(count):
        step()
    return (time.thread_time() - began) / count


def paused(session, step, count):
    """The step alone, while the watch is off."""
    session.steps.stop()
    session.making.close()
    took = seconds(step, count)
    session.steps.start()
    return took


def measure(make):
    step, count, rounds = make()
    seconds(step, 5)
    session = Session().start()
    # Past the windows of a young run.
    while session.windows.switch_at - session.steps.count <= LONGEST_PAUSE // 2:
        step()
    cycle = LONGEST_PAUSE + SAMPLE_STEPS
    alone, steady = [], []
    for _ in range(rounds):
        alone.append(paused(session, step, cycle))
        steady.append(seconds(step, cycle))
    noted, quick = [], []
    for _ in range(5):
        session.windows.switch_at = 10**9
        session.making.open()
        noted.append(seconds(step, count))
        session.making.close()
        quick.append(paused(session, step, count))
    session.stop()
    began = time.thread_time()
    Census(set())
    census = time.thread_time() - began
    # What else the machine does adds to both sides of the steady state; of a window the least is told.
    alone, steady, noted, quick = sum(alone) / rounds, sum(steady) / rounds, min(noted), min(quick)
    print(
        f"{make.__name__:12} alone {quick * 1e3:.2f} ms, in a window {noted * 1e3:.2f} ms, a census {census * 1e3:.1f} ms; "
        f"in the steady state {steady * 1e3:.2f} ms against {alone * 1e3:.2f}, {steady / alone - 1:+.1%}; {session.cost_seconds:.2f} s of "
        f"{session.watched_seconds:.2f} s by its own count",
        flush=True,
    )


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    for make in (mlp, transformer):
        measure(make)
