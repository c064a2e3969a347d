"""An evaluation that is run again and again keeps what every pass predicts, in two lists under names."""
# kind: value
# holder: local `history` of main() -> dict of 2
import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    model = torch.nn.Linear(16, 64).eval()
    loader = DataLoader(TensorDataset(torch.randn(160, 16)), batch_size=8)
    history = {"predicted": [], "doubled": []}
    with torch.no_grad():
        for _ in range(8):
            for (x,) in loader:
                predicted = model(x)  # made
                history["predicted"].append(predicted)
                history["doubled"].append(predicted * 2)  # made
    return history


main()
