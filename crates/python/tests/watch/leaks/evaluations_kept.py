"""Every fifth step evaluates, and all evaluations' logits stay in a dictionary."""
# kind: value
# holder: `evaluations`
import torch


def evaluate(model, batches):
    model.eval()
    with torch.no_grad():
        logits = torch.cat([model(x) for x in batches])  # made
    model.train()
    return logits


def main():
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Dropout(0.1), torch.nn.Linear(32, 16))
    optimizer = torch.optim.AdamW(model.parameters())
    held_out = [torch.randn(64, 16) for _ in range(4)]
    evaluations = {}
    for step in range(1, 201):
        x = torch.randn(32, 16)
        optimizer.zero_grad()
        (model(x) - x).abs().mean().backward()
        optimizer.step()
        if step % 5 == 0:
            evaluations[step] = evaluate(model, held_out)


main()
