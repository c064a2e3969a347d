"""No optimizer, loader or module: the program marks its steps."""
# kind: value
# holder: local `sums` of main()
import plimsoll_watch as watch
import torch


def main():
    sums = []
    for _ in range(40):
        x = torch.randn(64, 64)
        sums.append(x @ x)  # made
        watch.step()


main()
