import torch

optimizer_g = torch.optim.Adam(model.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())


def discriminate(images):
    optimizer_d.zero_grad()
    return adversarial(discriminator(model(images).detach()))


for images in loader:
    optimizer_g.zero_grad()
    loss_g = adversarial(discriminator(model(images)))
    loss_g.backward()
    optimizer_g.step()
    loss_d = discriminate(images)
    loss_d.backward()
    optimizer_d.step()
