"""Classes of results: what PyTorch 2.15's default `__torch_function__` gives."""

import pytest

import plimsoll as pm
from plimsoll import _plimsoll


class Named(pm.Tensor):
    pass


class Derived(Named):
    pass


class Other(pm.Tensor):
    pass


class Parameter(pm.Tensor):
    __torch_function__ = _plimsoll._disabled_torch_function_impl


def ones(cls=pm.Tensor):
    return pm.ones(2).as_subclass(cls) if cls is not pm.Tensor else pm.ones(2)


OPERATIONS = {
    "operator": lambda x: x + 1,
    "reflected": lambda x: 2 / x,
    "comparison": lambda x: x == x,
    "negated": lambda x: -x,
    "product": lambda x: x.view(1, 2) @ x.view(2, 1),
    "method": lambda x: x.exp(),
    "function": lambda x: pm.exp(x),
    "with a plain one": lambda x: ones() + x,
    "function with a plain one": lambda x: pm.maximum(ones(), x),
    "list": lambda x: pm.cat([ones(), x]),
    "view": lambda x: x.view(2, 1),
    "index": lambda x: x[0],
    "list as index": lambda x: x[[0, 1]],
    "transposed": lambda x: x.view(2, 1).T,
    "reshape": lambda x: x.reshape(2, 1),
    "in place": lambda x: x.clone().add_(1),
    "in place with a plain one": lambda x: ones().add_(x),
    "out": lambda x: pm.add(x, x, out=ones()),
    "detach": lambda x: x.detach(),
    "data": lambda x: x.data,
    "to": lambda x: x.to(pm.float64),
    "to itself": lambda x: x.to(pm.float32),
    "like": lambda x: pm.zeros_like(x),
    "random like": lambda x: pm.rand_like(x),
    "where": lambda x: pm.where(x > 0, x, ones()),
    "where, condition": lambda x: pm.where(x > 0, ones(), 1.0),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_results_have_the_class_of_their_operands(name):
    operation = OPERATIONS[name]
    assert type(operation(ones(Named))) is Named
    assert type(operation(ones(Derived))) is Derived
    assert type(operation(ones())) is pm.Tensor
    assert type(operation(ones(Parameter))) is (Parameter if name in ("to itself",) else pm.Tensor)


def test_several_results():
    assert [type(x) for x in ones(Named).sort()] == [Named, Named]
    assert [type(x) for x in ones(Named).nonzero(as_tuple=True)] == [Named]


def test_the_most_derived_class_counts():
    assert type(ones(Named) + ones(Derived)) is type(ones(Derived) + ones(Named)) is Derived
    assert type(ones(Named) + ones(Parameter)) is Named
    for operation in (lambda a, b: a + b, pm.maximum, lambda a, b: pm.stack((a, b))):
        with pytest.raises(TypeError, match="Named and Other"):
            operation(ones(Named), ones(Other))


def test_what_is_plain():
    x = ones(Named).requires_grad_()
    assert type(x) is Named
    (x * 2).sum().backward()
    assert type(x.grad) is pm.Tensor
    assert type(pm.ones(2).view(2, 1)._base) is pm.Tensor
    assert type(pm.tensor(x)) is pm.Tensor
    assert isinstance(x.sum().item(), float) and x.shape == (2,)


def test_a_class_of_the_program_is_shown_by_its_name():
    assert repr(ones(Named)) == str(ones(Named)) == "Named([1., 1.])"
    wide = pm.arange(30).as_subclass(Named)
    assert repr(wide).splitlines()[1].startswith("       18,"), "lines begin below the first element"
    assert repr(pm.nn.Parameter(ones())) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert repr(pm.nn.Buffer(pm.ones(1))) == "tensor([1.])"
