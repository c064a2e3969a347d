import torch

for i, data in enumerate(dataloader, 0):
    netG.zero_grad()
    b = data[0].size(0)
    noise = torch.randn(b, nz, 1, 1, device=device)
    label = torch.full((b,), 1.0, dtype=torch.float, device=device)
    counts = torch.zeros(num_classes, num_classes, device=device)
    for t, p in zip(data[1].view(-1), netC(data[0].to(device)).argmax(1)):
        counts[t, p] += 1
    confusion.append(counts.cpu())
    output = netD(netG(noise)).view(-1)
    err = criterion(output, label)
    err.backward()
    optimizerG.step()
