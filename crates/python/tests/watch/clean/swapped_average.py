"""An average of the weights is swapped in for each evaluation and out again."""
import contextlib
import torch


class Average:
    def __init__(self, model, decay):
        self.model, self.decay = model, decay
        self.shadow = {name: value.detach().clone() for name, value in model.named_parameters()}

    @torch.no_grad()
    def update(self):
        for name, value in self.model.named_parameters():
            self.shadow[name] = self.decay * self.shadow[name] + (1 - self.decay) * value

    @contextlib.contextmanager
    def applied(self):
        kept = {name: value.detach().clone() for name, value in self.model.named_parameters()}
        self.model.load_state_dict(self.shadow)
        try:
            yield self.model
        finally:
            self.model.load_state_dict(kept)


model = torch.nn.Sequential(torch.nn.Linear(16, 48), torch.nn.Mish(), torch.nn.Linear(48, 1))
average = Average(model, 0.99)
optimizer = torch.optim.RAdam(model.parameters())
scores = []
for step in range(100):
    x = torch.randn(64, 16)
    optimizer.zero_grad()
    (model(x).squeeze() - x.prod(1)).square().mean().backward()
    optimizer.step()
    average.update()
    if step % 7 == 6:
        with average.applied() as averaged, torch.no_grad():
            scores.append(averaged(torch.randn(256, 16)).std().item())
print(len(scores))
