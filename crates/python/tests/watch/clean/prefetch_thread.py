"""A thread makes batches ahead, as many as its queue takes."""
import queue
import threading
import torch


class Prefetcher:
    def __init__(self, count, depth=4):
        self.queue = queue.Queue(maxsize=depth)
        self.thread = threading.Thread(target=self.fill, args=(count,), daemon=True)
        self.thread.start()

    def fill(self, count):
        for _ in range(count):
            self.queue.put((torch.randn(32, 24), torch.randint(0, 3, (32,))))
        self.queue.put(None)

    def __iter__(self):
        while (batch := self.queue.get()) is not None:
            yield batch
        self.thread.join()


def main():
    model = torch.nn.Linear(24, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    seen = 0
    for x, y in Prefetcher(80):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        seen += len(x)
    print(seen)


main()
