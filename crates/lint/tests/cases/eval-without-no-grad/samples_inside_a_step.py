import torch


def run_epoch(model, data, opt, split):
    torch.set_grad_enabled(split == "train")
    model.train() if split == "train" else model.eval()
    for x in data:
        total = torch.zeros_like(x)
        for _ in range(4):
            total += model(x)
        if split == "train":
            opt.zero_grad()
            total.sum().backward()
            opt.step()


def adapt(model, data, opt):
    model.eval()
    for x in data:
        total = torch.zeros_like(x)
        for _ in range(4):
            total += model(x)
        opt.zero_grad()
        total.sum().backward()
        opt.step()
