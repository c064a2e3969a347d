"""`cargo xtask bench python [PART OF A ROW'S NAME]`: what Python programs feel of either library besides the work itself: small
operations, indexing, loaders, import time and installed size, beside PyTorch's, two threads each.

Run with an interpreter that has PyTorch, and Plimsoll's package on `PYTHONPATH`. Two workers (`python_worker.py` with either library)
take turns, round by round, so that whatever else the machine does hits both; what counts is the median of the rounds' ratios."""

import compileall
import importlib.metadata
import importlib.util
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

#: Work in turns, and the share of PyTorch's time that it may take at most.
ROWS = {
    "add_of_4": 0.40,
    "index_row": 0.60,
    "index_slice": 0.60,
    "index_mask": 0.60,
    "loader_2_workers": 0.80,
}
IMPORT_AT_MOST = 0.05
SIZE_AT_MOST = 0.02

#: Rounds of each row; odd, so that the median is one of them.
ROUNDS = 15
#: Ranks, from either end, of the interval around the median of 15 that holds with about 96 %.
INTERVAL_RANK = 3
#: How long one side of a round should take, in microseconds; short work is repeated.
ROUND_US = 60_000.0
#: Seconds between turns, so that the other side's spinning threads have gone to sleep.
PAUSE = 0.015

LIBRARIES = ("plimsoll", "torch")


class Worker:
    """A process that does work when asked."""

    def __init__(self, library):
        script = pathlib.Path(__file__).with_name("python_worker.py")
        self.process = subprocess.Popen([sys.executable, script, library], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def time(self, name, count):
        """Microseconds of doing `name` that often."""
        time.sleep(PAUSE)
        self.process.stdin.write(f"{name} {count}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{name}: a worker ended with status {self.process.wait()}")
        return float(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def rounds_of(ours, theirs):
    """Pairs of what both calls tell, each side in its turn going first."""
    pairs = []
    for turn in range(ROUNDS):
        if turn % 2 == 0:
            own = ours()
            pairs.append((own, theirs()))
        else:
            other = theirs()
            pairs.append((ours(), other))
    return pairs


def compared(name, workers):
    """Microseconds of one call of the work, by round and side."""
    # Twice: the first time makes the inputs and warms caches.
    for _ in range(2):
        longest = max(worker.time(name, 1) for worker in workers)
    count = int(min(max(ROUND_US / longest, 1), 1_000_000))
    ours, theirs = (lambda worker=worker: worker.time(name, count) / count for worker in workers)
    return rounds_of(ours, theirs)


def import_us(library):
    """How long the import takes in a process of its own that has done nothing else, in microseconds."""
    program = f"import time\nstart = time.perf_counter()\nimport {library}\nprint((time.perf_counter() - start) * 1e6)"
    return float(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout)


def told(name, pairs, at_most):
    """Prints a row; whether it is over its bound."""
    ratios = sorted(ours / theirs for ours, theirs in pairs)
    ratio = statistics.median(ratios)
    low, high = ratios[INTERVAL_RANK], ratios[ROUNDS - 1 - INTERVAL_RANK]
    ours, theirs = (statistics.median(side) for side in zip(*pairs))
    verdict = "" if ratio <= at_most else "  OVER"
    print(f"{name:24} {ours:>12.3f} {theirs:>12.3f}  {ratio:.3f} [{low:.3f}, {high:.3f}]  {at_most:>5.2f}{verdict}", flush=True)
    return ratio > at_most


def own_bytes():
    """The package's files as an installation has them: with compiled Python of this interpreter, and nothing from other runs."""
    package = pathlib.Path(importlib.util.find_spec("plimsoll").origin).parent
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "plimsoll"
        shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(copy, quiet=2)
        return sum(path.stat().st_size for path in copy.rglob("*") if path.is_file())


def installed_bytes(name):
    """The files that a distribution installed, its compiled Python among them."""
    files = [file.locate() for file in importlib.metadata.distribution(name).files or ()]
    return sum(path.stat().st_size for path in files if path.is_file())


def with_requirements(name, extras, seen):
    """Adds the distribution and what it requires here, with the extras that were asked for, to the names that were `seen`."""
    try:
        requirements = importlib.metadata.distribution(name).requires or ()
    except importlib.metadata.PackageNotFoundError:
        return  # for another system
    seen.add(name)
    for requirement in requirements:
        needed, wanted = re.match(r"([\w.-]+)\s*(?:\[([^\]]*)\])?", requirement).groups()
        extra = re.search(r"extra == [\"']([^\"']+)", requirement)
        if (extra is None or extra.group(1) in extras) and needed.lower() not in seen:
            with_requirements(needed.lower(), re.findall(r"[\w.-]+", wanted or ""), seen)


def compare_sizes():
    """Prints the rows of sizes; how many are over their bound. Plimsoll requires nothing."""
    ours = own_bytes()
    needed = set()
    with_requirements("torch", [], needed)
    everything = sum(map(installed_bytes, needed))
    over = 0
    for name, theirs in (("installed_bytes", everything), ("package_bytes_alone", installed_bytes("torch"))):
        ratio = ours / theirs
        verdict = "" if ratio <= SIZE_AT_MOST else "  OVER"
        print(f"{name:24} {ours:>12} {theirs:>12}  {ratio:.4f}                {SIZE_AT_MOST:>5.2f}{verdict}", flush=True)
        over += ratio > SIZE_AT_MOST
    return over


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    print(f"{'work':24} {'plimsoll us':>12} {'torch us':>12}  ratio                 at most")
    over = rows = 0
    names = [name for name in ROWS if wanted in name]
    if names:
        workers = [Worker(library) for library in LIBRARIES]
        for name in names:
            over += told(name, compared(name, workers), ROWS[name])
        for worker in workers:
            worker.close()
    if wanted in "import":
        for library in LIBRARIES:
            import_us(library)  # what is read from the disk once is not measured
        pairs = rounds_of(*(lambda library=library: import_us(library) for library in LIBRARIES))
        over += told("import", pairs, IMPORT_AT_MOST)
        names.append("import")
    rows = len(names)
    if wanted in "installed_bytes":
        over += compare_sizes()
        rows += 2
    print(f"{rows} rows, {over} over their bound")


if __name__ == "__main__":
    main()
