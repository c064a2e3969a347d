"""Two streams: blocks that another stream still uses are given back late."""
import torch


def main():
    side = torch.cuda.Stream()
    results = []
    for _ in range(8):
        x = torch.randn(1 << 20, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            y = (x * 2).sum()
            x.record_stream(side)
        del x
        results.append(y.item())
    last = torch.randn(1 << 20, device="cuda")
    with torch.cuda.stream(side):
        z = last * 3
        last.record_stream(side)
    del last
    return results, z
