"""The state of the model is kept after every epoch."""
# kind: value
# holder: local `states` of main()
import copy
import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.Adam(model.parameters())
    states = []
    for _ in range(20):
        for (x,) in DataLoader(TensorDataset(torch.randn(48, 64)), batch_size=8):
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
        states.append(copy.deepcopy(model.state_dict()))  # made


main()
