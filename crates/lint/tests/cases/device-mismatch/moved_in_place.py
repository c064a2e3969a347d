import torch
model = torch.nn.Linear(4, 4)
model.to("cuda")
x = torch.randn(2, 4)
y = model(x)  # expect: device-mismatch
