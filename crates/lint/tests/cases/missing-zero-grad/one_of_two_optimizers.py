import torch

optimizer_g = torch.optim.Adam(model.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())
for images in loader:
    optimizer_g.zero_grad(set_to_none=True)
    loss_g = adversarial(discriminator(model(images)))
    loss_g.backward()
    optimizer_g.step()
    loss_d = adversarial(discriminator(model(images).detach()))
    loss_d.backward()
    optimizer_d.step()  # expect: missing-zero-grad
