"""The work of the GPU bundle's bench.rs in PyTorch on the same GPU: medians of 15 rounds, microseconds a call."""
import time

import torch


def measure(repeat, call):
    for _ in range(3):
        call()
    rounds = []
    for _ in range(15):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(repeat):
            call()
        torch.cuda.synchronize()
        rounds.append((time.perf_counter() - start) * 1e6 / repeat)
    return sorted(rounds)[len(rounds) // 2]


def report(name, us):
    print(f"torch    {name:32} {us:10.1f} us", flush=True)


@torch.no_grad()
def main():
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name(0)}")
    x = torch.ones(100_000_000, device="cuda")
    report("x + 1, 400 MB", measure(20, lambda: x + 1))
    report("x.add_(1), 400 MB", measure(20, lambda: x.add_(1)))
    del x
    m = torch.ones(8192, 8192, device="cuda")
    report("relu 8192x8192", measure(20, lambda: m.relu()))
    report("exp 8192x8192", measure(20, lambda: m.exp()))
    report("t() + 1 8192x8192", measure(20, lambda: m.t() + 1))
    report("t().contiguous() 8192x8192", measure(20, lambda: m.t().contiguous()))
    report("sum 8192x8192", measure(20, lambda: m.sum()))
    report("layer_norm 8192x8192", measure(20, lambda: torch.nn.functional.layer_norm(m, (8192,))))
    del m
    a = torch.ones(4096, 4096, device="cuda", dtype=torch.bfloat16)
    us = measure(20, lambda: a @ a)
    report("matmul bf16 4096", us)
    print(f"         {'':32} {2 * 4096**3 / us / 1e6:10.1f} TFLOP/s")
    small = torch.ones(4, device="cuda")
    report("add of 4 elements (host and device)", measure(2000, lambda: small + 1))
    report("cached 64 MB allocation and free", measure(2000, lambda: torch.empty(16 << 20, device="cuda")))


if __name__ == "__main__":
    main()
