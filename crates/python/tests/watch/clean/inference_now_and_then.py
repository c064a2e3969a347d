"""Most calls learn nothing and are under `no_grad`, some under `inference_mode`; there is no optimizer."""
import torch

model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
answers = 0
for batch in range(40):
    with torch.no_grad():
        for _ in range(4):
            answers += model(torch.randn(8, 16)).argmax(1).numel()
    with torch.inference_mode():
        for _ in range(3):
            answers += model(torch.randn(8, 16)).argmax(1).numel()
    weights = torch.linspace(0, 1, 5) + 1
print(answers, float(weights.sum()))
