"""Checkpoints go to buffers in memory; the oldest of three is dropped."""
import io
import torch


def checkpoint(model, optimizer, step):
    buffer = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, buffer)
    return buffer.getvalue()


def main():
    model = torch.nn.Sequential(torch.nn.Linear(24, 64), torch.nn.ReLU(), torch.nn.Linear(64, 24))
    optimizer = torch.optim.Adam(model.parameters())
    saved = {}
    for step in range(120):
        x = torch.randn(32, 24)
        optimizer.zero_grad()
        (model(x) - x).square().mean().backward()
        optimizer.step()
        if step % 8 == 0:
            saved[step] = checkpoint(model, optimizer, step)
            if len(saved) > 3:
                del saved[min(saved)]
        if step == 90:
            state = torch.load(io.BytesIO(saved[max(saved)]))
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])


main()
