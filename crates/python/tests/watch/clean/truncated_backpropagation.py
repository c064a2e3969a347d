"""A recurrent state that is detached between batches."""
import torch


def main():
    cell = torch.nn.LSTMCell(16, 32)
    optimizer = torch.optim.Adam(cell.parameters())
    state = (torch.zeros(8, 32), torch.zeros(8, 32))
    for _ in range(60):
        state = tuple(part.detach() for part in state)
        for _ in range(4):
            state = cell(torch.randn(8, 16), state)
        optimizer.zero_grad()
        state[0].pow(2).mean().backward()
        optimizer.step()


main()
