import torch
model = torch.nn.Linear(3, 3)
out = model(data)
prob = out.sigmoid()
prob.clamp_(1e-6, 1)  # expect: inplace-on-saved
loss = prob.log().mean()
loss.backward()
