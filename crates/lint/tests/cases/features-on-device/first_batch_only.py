import torch

device = torch.device("cuda")
model = Model().to(device)
pictures = []
with torch.no_grad():
    for step, batch in enumerate(val_loader):
        out = model(batch.to(device))
        if step == 0:
            pictures.append(out)
