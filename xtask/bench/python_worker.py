"""One side of `cargo xtask bench python`: `python_worker.py torch|plimsoll`.

One program for both, so that they do the same: only the module's name differs. It reads `NAME COUNT` lines, does that work so
often, and answers with the microseconds that it took. `python_bench.py` starts one for each library and has them take turns."""

import importlib
import sys
import time

LIBRARY = sys.argv[1]
torch = importlib.import_module(LIBRARY)
data = importlib.import_module(LIBRARY + ".utils.data")

torch.set_num_threads(2)


def add_of_4():
    x, y = torch.randn(4), torch.randn(4)
    return lambda: x + y


def index_row():
    x, i = torch.randn(8, 4), 3
    return lambda: x[i]


def index_slice():
    x = torch.randn(8, 4)
    return lambda: x[1:3]


def index_mask():
    x = torch.randn(8, 4)
    mask = x > 0
    return lambda: x[mask]


class Samples(data.Dataset):
    """Rows of a table with their labels, as a program of its own would give them."""

    def __init__(self, count):
        self.rows, self.labels = torch.randn(count, 16), torch.randint(0, 10, (count,))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index], self.labels[index]


def loader_2_workers():
    loader = data.DataLoader(Samples(10_000), batch_size=32, shuffle=True, num_workers=2)

    def epoch():
        samples = sum(len(labels) for _, labels in loader)
        assert samples == 10_000, samples

    return epoch


WORK = {
    "add_of_4": add_of_4,
    "index_row": index_row,
    "index_slice": index_slice,
    "index_mask": index_mask,
    "loader_2_workers": loader_2_workers,
}


def serve():
    current, work = None, None
    # One line at a time: worker processes that fork from here must not read ahead of this one.
    while line := sys.stdin.readline():
        name, _, count = line.strip().rpartition(" ")
        if name != current:
            work = None
            current, work = name, WORK[name]()
        repeats = range(int(count))
        start = time.perf_counter()
        for _ in repeats:
            work()
        print((time.perf_counter() - start) * 1e6, flush=True)


if __name__ == "__main__":
    serve()
