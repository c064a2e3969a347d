"""A thread that should write activations to a disk keeps all that it has got."""
# kind: value
# holder: local `written` of drain()
import queue
import threading
import torch


def drain(inbox):
    written = []
    while (item := inbox.get()) is not None:
        written.append(item)
        inbox.task_done()


def main():
    inbox = queue.Queue()
    writer = threading.Thread(target=drain, args=(inbox,), daemon=True)
    writer.start()
    model = torch.nn.Linear(40, 40)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(45):
        hidden = model(torch.randn(10, 40))  # made
        optimizer.zero_grad()
        hidden.square().mean().backward()
        optimizer.step()
        inbox.put(hidden.detach())
        inbox.join()
    inbox.put(None)
    writer.join()


main()
