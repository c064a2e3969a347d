import torch
optimizer = torch.optim.LBFGS(model.parameters())
for i in range(20):
    def closure():
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        return loss
    optimizer.step(closure)
