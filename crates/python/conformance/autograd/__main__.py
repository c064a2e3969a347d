"""Compares Plimsoll with PyTorch on random programs: `python autograd --torch PYTHON [--count N]
[--seed S] [--record FILE]`, with PYTHON an interpreter that has PyTorch. Prints a minimal program
for every disagreement, and fails if there was one. With `--record` the first 200 programs that show
something are written down, with PyTorch's answers, for CI."""

import argparse
import gzip
import json
import os
import subprocess
import sys

import programs
from compare import difference, left_out

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDED = 200


class Worker:
    def __init__(self, python, name):
        command = [python, os.path.join(HERE, "worker.py"), name]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(self, lines):
        self.process.stdin.write(json.dumps(lines) + "\n")
        self.process.stdin.flush()

    def receive(self):
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit("a worker ended before its time")
        return json.loads(answer)


class Pair:
    def __init__(self, torch):
        self.theirs, self.ours = Worker(torch, "torch"), Worker(sys.executable, "plimsoll")

    def run(self, lines):
        self.theirs.send(lines)
        self.ours.send(lines)
        return self.theirs.receive(), self.ours.receive()

    def disagree(self, lines):
        theirs, ours = self.run(lines)
        return None if left_out(theirs, ours) else difference(theirs, ours)

    def smallest(self, lines):
        """The program without all lines that the disagreement does not need."""
        shorter = True
        while shorter:
            shorter = False
            for index in reversed(range(len(lines))):
                without = lines[:index] + lines[index + 1 :]
                if self.disagree(without):
                    lines, shorter = without, True
        return lines


def rounded(value):
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, list):
        return [rounded(item) for item in value]
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return value


def record(path, recorded):
    text = json.dumps(recorded, separators=(",", ":"))
    with open(path, "wb") as file, gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
        packed.write(text.encode())


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--torch", required=True)
    arguments.add_argument("--count", type=int, default=5000)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--most", type=int, default=5, help="stop after so many disagreements")
    arguments.add_argument("--record")
    options = arguments.parse_args()
    pair = Pair(options.torch)
    refused, left, wrong, recorded = 0, 0, 0, []
    for seed in range(options.seed, options.seed + options.count):
        lines = programs.program(seed)
        theirs, ours = pair.run(lines)
        refused += theirs["refused"] is not None
        if left_out(theirs, ours):
            left += 1
            continue
        if difference(theirs, ours) is None:
            if len(recorded) < RECORDED:
                answer = {key: theirs[key] for key in ("refused", "log", "seen")}
                recorded.append({"program": lines, "answer": rounded(answer)})
            continue
        wrong += 1
        lines = pair.smallest(lines)
        print(f"--- program {seed} disagrees; what is left of it:")
        print("\n".join(lines))
        print(pair.disagree(lines), flush=True)
        if wrong == options.most:
            break
    print(f"{options.count} programs: {wrong} disagree, {refused} refused by both, {left} left out")
    if options.record and not wrong:
        record(options.record, recorded)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
