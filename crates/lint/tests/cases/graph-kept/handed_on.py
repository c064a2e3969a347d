import torch
model = torch.nn.Linear(4, 4)
outputs = []
for i in range(10):
    outputs.append(model(data))
loss = combine(outputs)
