"""The optimizer's state is remembered in every step; a state that is not copied holds the tensors that live anyway."""
import torch


def main():
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.Adam(model.parameters())
    remembered = []
    for _ in range(60):
        optimizer.zero_grad()
        model(torch.randn(8, 64)).square().mean().backward()
        optimizer.step()
        remembered.append((model.state_dict(), optimizer.state_dict()))
    print(len(remembered))


main()
