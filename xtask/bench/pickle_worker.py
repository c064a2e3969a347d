"""Loads snapshots with CPython's pickle: for each line `FILE COUNT`, microseconds of `pickle.loads` alone."""

import pickle
import sys
import time

for line in sys.stdin:
    path, count = line.rsplit(" ", 1)
    with open(path, "rb") as file:
        data = file.read()
    elapsed = 0.0
    for _ in range(int(count)):
        start = time.perf_counter()
        loaded = pickle.loads(data)
        elapsed += time.perf_counter() - start
        del loaded
    print(f"{elapsed * 1e6:.1f}", flush=True)
