"""Tensors of a class of the program's own, and objects that raise when they are asked."""
import torch


class Named(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        calls[0] += 1
        return super().__torch_function__(function, types, args, kwargs or {})


class Hostile:
    __slots__ = ("held",)

    def __getattr__(self, name):
        raise RuntimeError("do not ask")

    def __eq__(self, other):
        raise RuntimeError("do not compare")

    def __bool__(self):
        raise RuntimeError("do not judge")

    def __iter__(self):
        raise RuntimeError("do not walk")

    __hash__ = None


class Lies(Hostile):
    @property
    def __dict__(self):
        raise RuntimeError("no names")


calls = [0]
hostile = [Hostile(), Lies()]
model = torch.nn.Linear(32, 32)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(40):
    x = torch.randn(8, 32).as_subclass(Named)
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
print(calls[0])
