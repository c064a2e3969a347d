"""Images become larger every ten steps, and batches smaller."""
import torch


def stages():
    for side, batch in ((8, 32), (12, 24), (16, 16), (20, 12), (24, 8), (28, 6)):
        for _ in range(10):
            yield torch.rand(batch, 3, side, side), torch.randint(0, 5, (batch,))


net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 12, 3, padding=1),
    torch.nn.GroupNorm(3, 12),
    torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(2),
    torch.nn.Flatten(),
    torch.nn.Linear(48, 5),
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=60)
for image, label in stages():
    optimizer.zero_grad(set_to_none=True)
    torch.nn.functional.cross_entropy(net(image), label, label_smoothing=0.1).backward()
    optimizer.step()
    scheduler.step()
