"""The rows of `cargo xtask bench operations` on a GPU: Plimsoll's worker (`gpu_bundle worker`) and PyTorch's
(`torch_worker.py --cuda`) take turns, round by round; what counts is the median of the rounds' ratios.

    python3 gpu_rows.py [PART OF A ROW'S NAME]
"""

import pathlib
import statistics
import subprocess
import sys

ROUNDS = 9
ROUND_US = 20_000

# Plimsoll's time over PyTorch's, at most.
ROWS = {
    "conv2d_64_forward": 1.20,
    "conv2d_64": 1.20,
    "conv2d_3_to_16": 1.20,
    "conv2d_16_to_32": 1.20,
    "conv2d_depthwise_96_forward": 1.00,
    "conv2d_depthwise_96": 1.00,
    "max_pool2d_64mb": 1.00,
    "batch_norm_64mb": 1.00,
    "group_norm_64mb": 1.00,
    "cross_entropy_4096x32768": 0.70,
    "linear_cross_entropy_50304": 1.05,
    "attention_causal": 4.00,
    "lstm": 1.20,
    "embedding_50000x512": 1.00,
    "cumsum_64mb": 1.10,
    "topk_64mb": 1.10,
    "index_select_64mb": 1.10,
    "scatter_add_64mb": 1.10,
    "unique_64mb": 1.10,
    "argmax_64mb": 1.10,
    "where_64mb": 1.00,
    "clamp_64mb": 1.00,
    "lerp_64mb": 1.00,
    "addcmul_64mb": 1.00,
    "var_64mb": 1.00,
    "logsumexp_64mb": 1.00,
    "norm_64mb": 1.00,
}


class Worker:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def time(self, name, count):
        """Microseconds of `count` turns, or a word on why there are none."""
        self.process.stdin.write(f"{name} {count}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        try:
            return float(answer)
        except ValueError:
            return answer or "the worker ended"


def main():
    here = pathlib.Path(__file__).resolve().parent
    ours = Worker([here / "gpu_bundle", "worker"])
    theirs = Worker([sys.executable, here / "torch_worker.py", "--cuda"])
    over = 0
    print(f"{'work':36} {'plimsoll us':>12} {'torch us':>12}  ratio  at most")
    for name, at_most in ROWS.items():
        if not all(part in name for part in sys.argv[1:]):
            continue
        first = [worker.time(name, 3) for worker in (ours, theirs)]
        if any(isinstance(us, str) for us in first):
            print(f"{name:36} {first}")
            over += 1
            continue
        count = max(1, int(ROUND_US / max(worker.time(name, 1) for worker in (ours, theirs))))
        rounds = []
        for turn in range(ROUNDS):
            pair = (ours, theirs) if turn % 2 == 0 else (theirs, ours)
            times = {worker: worker.time(name, count) / count for worker in pair}
            rounds.append((times[ours], times[theirs]))
        ratio = statistics.median(a / b for a, b in rounds)
        mine, peers = (statistics.median(side) for side in zip(*rounds))
        over += ratio > at_most
        verdict = "  OVER" if ratio > at_most else ""
        print(f"{name:36} {mine:12.1f} {peers:12.1f}  {ratio:5.2f}  {at_most:5.2f}{verdict}", flush=True)
    print(f"{over} rows over their bound or without an answer")


if __name__ == "__main__":
    main()
