import torch
from tqdm import tqdm


class Runner:
    def __init__(self, net, val_loader, device):
        self.net = net
        self.val_loader = val_loader
        self.device = device

    def validate(self):
        self.net.eval()
        correct, seen = 0, 0
        for images, labels in tqdm(self.val_loader, desc="val"):
            images, labels = images.to(self.device), labels.to(self.device)
            if (scores := self.net(images)) is not None:  # expect: eval-without-no-grad
                correct += (scores.argmax(1) == labels).sum().item()
            seen += labels.numel()
        return correct / seen
