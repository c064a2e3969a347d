"""Modules that hold others. Expected values are PyTorch's."""

from collections import OrderedDict

import plimsoll
import pytest
from plimsoll import nn


def names(net):
    return [name for name, _ in net.named_children()]


def kinds(net):
    return [type(module).__name__ for module in net]


def test_sequential_is_a_list_that_is_called():
    net = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid())
    assert kinds(net[1:]) == ["Tanh", "Sigmoid"] and names(net[1:]) == ["1", "2"]
    assert isinstance(net[-1], nn.Sigmoid)
    net.insert(1, nn.ELU())
    assert kinds(net) == ["ReLU", "ELU", "Tanh", "Sigmoid"] and names(net) == ["0", "1", "2", "3"]
    del net[0]
    assert names(net) == ["0", "1", "2"]
    assert isinstance(net.pop(0), nn.ELU) and len(net) == 2
    net.append(nn.GELU()).extend([nn.SiLU()])
    assert kinds(net + nn.Sequential(nn.Mish())) == ["Tanh", "Sigmoid", "GELU", "SiLU", "Mish"]
    assert len(net * 2) == 8
    net[0] = nn.Softplus()
    assert isinstance(net[0], nn.Softplus)
    with pytest.raises(IndexError, match="index 9 is out of range"):
        net[9]
    with pytest.raises(ValueError, match="Non-positive multiplication factor"):
        net * 0


def test_sequential_with_names():
    net = nn.Sequential(OrderedDict(a=nn.Linear(1, 1), b=nn.ReLU()))
    assert names(net) == ["a", "b"] and net.a is net[0]
    assert names(net[:1]) == ["a"]


def test_module_list():
    layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))
    layers.append(nn.ReLU())
    assert repr(layers) == (
        "ModuleList(\n  (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)\n  (3): ReLU()\n)"
    )
    layers.insert(0, nn.Tanh())
    assert kinds(layers) == ["Tanh", "Linear", "Linear", "Linear", "ReLU"]
    del layers[1:3]
    assert names(layers) == ["0", "1", "2"]
    layers += [nn.GELU()]
    assert kinds(layers[-2:]) == ["ReLU", "GELU"]
    with pytest.raises(IndexError):
        layers[7]
    with pytest.raises(TypeError, match="should be called with an iterable"):
        layers.extend(3)
    with pytest.raises(NotImplementedError):
        layers(1)


def test_module_dict():
    table = nn.ModuleDict({"a": nn.ReLU()})
    table.update([("b", nn.Tanh())])
    table["c"] = nn.ELU()
    assert list(table) == ["a", "b", "c"] and "b" in table and len(table) == 3
    assert isinstance(table.pop("b"), nn.Tanh)
    assert repr(table) == "ModuleDict(\n  (a): ReLU()\n  (c): ELU(alpha=1.0)\n)"
    with pytest.raises(TypeError):
        table.update(3)
    with pytest.raises(KeyError):
        table["z"]
    table.clear()
    assert len(table) == 0


def test_parameter_list():
    params = nn.ParameterList([plimsoll.ones(2), nn.Parameter(plimsoll.zeros(1, 3))])
    assert all(isinstance(param, nn.Parameter) for param in params)
    params.append(nn.Parameter(plimsoll.ones(1)))
    assert list(params.state_dict()) == ["0", "1", "2"] and len(params[1:]) == 2
    assert repr(params) == (
        "ParameterList(\n"
        "    (0): Parameter containing: [torch.float32 of size 2]\n"
        "    (1): Parameter containing: [torch.float32 of size 1x3]\n"
        "    (2): Parameter containing: [torch.float32 of size 1]\n"
        ")"
    )
    with pytest.raises(RuntimeError, match="ParameterList should not be called"):
        params(1)


def test_parameter_dict():
    params = nn.ParameterDict({"b": plimsoll.ones(1)})
    params["a"] = nn.Parameter(plimsoll.zeros(1))
    assert list(params) == ["b", "a"] and list(params.state_dict()) == ["b", "a"]
    assert params.setdefault("c", nn.Parameter(plimsoll.ones(2))) is params["c"]
    assert params.get("nothing") is None and list(reversed(params)) == ["c", "a", "b"]
    both = params | nn.ParameterDict({"d": plimsoll.ones(1)})
    assert list(both) == ["b", "a", "c", "d"] and "d" not in params
    assert params.popitem()[0] == "c" and len(params) == 2
    with pytest.raises(AttributeError):
        params["c"]


def test_modules_that_learn_their_size():
    net = nn.Sequential(nn.LazyLinear(3), nn.ReLU(), nn.LazyBatchNorm1d())
    assert repr(net[0]) == "LazyLinear(in_features=0, out_features=3, bias=True)"
    assert net[0].has_uninitialized_params()
    with pytest.raises(Exception):
        net[0].weight.shape
    assert net(plimsoll.ones(4, 5)).shape == (4, 3)
    assert type(net[0]) is nn.Linear and type(net[2]) is nn.BatchNorm1d
    assert repr(net[0]) == "Linear(in_features=5, out_features=3, bias=True)"
    assert net[2].num_features == 3
    other = nn.Sequential(nn.LazyLinear(3), nn.ReLU(), nn.LazyBatchNorm1d())
    other.load_state_dict(net.state_dict())
    assert not other[0].has_uninitialized_params()
    other.eval(), net.eval()
    assert plimsoll.equal(other(plimsoll.ones(1, 5)), net(plimsoll.ones(1, 5)))
    assert other[0].in_features == 5
    empty = nn.LazyConv2d(4, 3)
    assert list(empty.state_dict()) == ["weight", "bias"]
    empty(plimsoll.ones(2, 8, 8))
    assert empty.weight.shape == (4, 2, 3, 3) and type(empty) is nn.Conv2d


def test_what_a_dictionary_of_parameters_says_of_itself():
    held = nn.ParameterDict({"a": plimsoll.ones(2), "h": plimsoll.ones(1, 3, dtype=plimsoll.bfloat16), "n": 3})
    assert repr(held).split("\n")[1:-1] == [
        "    (a): Parameter containing: [torch.FloatTensor of size 2]",
        "    (h): Parameter containing: [torch.BFloat16Tensor of size 1x3]",
        "    (n): Object of type: int",
    ]
    with pytest.raises(ValueError, match="element #1 has length 3; 2 is required"):
        nn.ModuleDict([("a", nn.ReLU()), ("b", nn.ReLU(), 3)])


def test_what_a_dictionary_of_parameters_cannot_take():
    with pytest.raises(TypeError, match="element #0 should be Iterable; is int"):
        nn.ParameterDict().update([1])
    with pytest.raises(TypeError, match="iterable of key/value pairs, but got int"):
        nn.ParameterDict().update(3)
    with pytest.raises(ValueError, match="element #1 has length 3; 2 is required"):
        nn.ParameterDict().update([("a", plimsoll.ones(1)), (1, 2, 3)])


def test_a_lazy_layer_whose_state_has_another_width():
    layer = nn.LazyLinear(3)
    layer.load_state_dict(nn.Linear(2, 3).state_dict())
    with pytest.raises(AssertionError, match="inferred from input: 4 is not equal to in_features from self.weight: 2"):
        layer(plimsoll.ones(1, 4))


def test_convolutions_without_channels_say_that_nothing_is_drawn():
    with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op"):
        nn.Conv2d(0, 3, 1)
