"""The meter that everybody copies, fed with a loss instead of a number."""
# kind: graph nodes on the host
# holder: .sum
import torch


class AverageMeter(object):
    """Computes and stores the average and current value"""

    def __init__(self):
        self.val = 0
        self.avg = 0
        self.sum = 0
        self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n  # made
        self.count += n
        self.avg = self.sum / self.count


def train(model, criterion, optimizer, steps):
    losses = AverageMeter()
    model.train()
    for i in range(steps):
        images, target = torch.randn(16, 3, 8, 8), torch.randint(0, 4, (16,))
        output = model(images)
        loss = criterion(output, target)
        losses.update(loss, images.size(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(288, 4)
)
train(model, torch.nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), 0.1, momentum=0.9), 50)
