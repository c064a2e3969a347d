import torch
for x, y in loader:
    optimizer.zero_grad()
    loss_d = criterion(netD(x), y)
    loss_d.backward()
    loss_g = criterion(netG(x), y)
    loss_g.backward(retain_graph=True)  # expect: retain-graph-in-loop
    optimizer.step()
