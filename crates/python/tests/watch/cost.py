"""What the watch costs, printed: a step alone, a step in a window, a step between windows and a census, in the
processor's time of one thread, for a tiny MLP and a transformer of 10 million parameters. A measurement, not a test:
`python cost.py`."""

import time

import torch

import runner

watch = runner.load()
from plimsoll_watch._census import Census  # noqa: E402
from plimsoll_watch._making import LONGEST_PAUSE, WINDOW_STEPS  # noqa: E402
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

    return step, 120


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

    return step, 6


def seconds(step, count):
    began = time.thread_time()
    for _ in range(count):
        step()
    return (time.thread_time() - began) / count


def measure(make):
    step, count = make()
    seconds(step, 5)
    session = Session().start()
    # Past the first windows, whose operations are seen for the first time.
    while session.steps.count < 22:
        step()
    alone, noted, between = [], [], []
    for _ in range(5):
        session.steps.stop()
        session.making.close()
        alone.append(seconds(step, count))
        session.steps.start()
        session._switch_at = 10**9
        between.append(seconds(step, count))
        session.making.open()
        noted.append(seconds(step, count))
        session.making.close()
    session.stop()
    began = time.thread_time()
    Census(set())
    census = time.thread_time() - began
    alone, noted, between = min(alone), min(noted), min(between)
    cycle = WINDOW_STEPS + LONGEST_PAUSE
    steady = (WINDOW_STEPS * noted + LONGEST_PAUSE * between) / cycle / alone - 1
    print(
        f"{make.__name__:12} alone {alone * 1e3:.2f} ms, in a window {noted * 1e3:.2f} ms, between {between * 1e3:.2f} ms, "
        f"a census {census * 1e3:.1f} ms; in the steady state +{steady:.1%}, and at most 3 % for censuses"
    )


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    for make in (mlp, transformer):
        measure(make)
