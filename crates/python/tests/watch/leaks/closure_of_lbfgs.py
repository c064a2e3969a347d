"""The closure of LBFGS writes down every output that it has computed."""
# kind: value
# holder: `trace`
import math
import torch


def fit_sine(steps):
    x = torch.linspace(-math.pi, math.pi, 500).unsqueeze(1)
    y = torch.sin(x)
    model = torch.nn.Sequential(torch.nn.Linear(1, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    solver = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=2, history_size=4)
    trace = []

    def closure():
        solver.zero_grad()
        prediction = model(x)  # made
        loss = torch.nn.functional.mse_loss(prediction, y)
        loss.backward()
        trace.append(prediction.detach())
        return loss

    for _ in range(steps):
        solver.step(closure)
    return len(trace)


print(fit_sine(45) > 45)
