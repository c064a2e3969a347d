import torch


@torch.inference_mode()
def embed(model, loader, device):
    model.eval()
    cls = []
    for batch in loader:
        hidden = model(batch.to(device)).cpu()
        cls.append(hidden[:, 0])  # expect: slice-keeps-storage
    return torch.cat(cls)
