"""Requests are answered and forgotten."""
import torch

model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4)).eval()
with torch.inference_mode():
    for _ in range(80):
        answer = model(torch.randn(32, 64)).argmax(-1).tolist()
