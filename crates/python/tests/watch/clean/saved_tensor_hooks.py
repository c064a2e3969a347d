"""What graphs save is packed and unpacked."""
import torch

packed = [0, 0]


def pack(x):
    packed[0] += 1
    return x.to(torch.bfloat16)


def unpack(x):
    packed[1] += 1
    return x.float()


model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(50):
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        out = model(torch.randn(32, 64))
    optimizer.zero_grad()
    out.mean().backward()
    optimizer.step()
print(packed)
