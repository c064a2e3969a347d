import torch
for real in train_loader:
    noise = torch.randn(64, 100).cuda()  # expect: create-then-move
    fake = generator(noise)
