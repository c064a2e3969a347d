"""The programs that costs are measured on: a tiny MLP and a transformer of 11 million parameters, on PyTorch or on a module with its
names. Each gives a step to call, and how often to."""

import time


def mlp(torch):
    layers = [torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 128), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(128, 10))
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.randn(32, 64), torch.randint(0, 10, (32,))

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step, 40, 41


def transformer(torch):
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

    return step, 3, 5


def seconds(step, count):
    """Seconds of this thread's processor time that a step takes."""
    began = time.thread_time()
    for _ in range(count):
        step()
    return (time.thread_time() - began) / count
