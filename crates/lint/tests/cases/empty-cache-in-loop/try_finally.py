import torch
import gc


def train_one_epoch(model, criterion, optimizer, data_loader, device):
    model.train()
    for i, (images, target) in enumerate(data_loader):
        try:
            optimizer.zero_grad()
            output = model(images.to(device))
            loss = criterion(output, target.to(device))
            loss.backward()
            optimizer.step()
        finally:
            del output, loss
            gc.collect()  # expect: gc-collect-in-loop
            torch.cuda.empty_cache()  # expect: empty-cache-in-loop
