"""`TorchFunctionMode`: every operation of a thread goes to a mode first."""

import threading

import plimsoll as pm
import pytest
from plimsoll.overrides import BaseTorchFunctionMode, TorchFunctionMode


class Seen(TorchFunctionMode):
    def __init__(self):
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_a_mode_sees_operations_on_plain_tensors():
    x = pm.tensor([1.0, 2.0])
    with Seen() as seen:
        y = pm.exp(x + 1).sum(dim=0)
        y.mul_(2)
        x[0]
    x * 2
    assert seen.names == ["add", "exp", "sum", "mul_", "__getitem__"]
    assert y.item() == pytest.approx(2 * (pm.e**2 + pm.e**3), rel=1e-6)


def test_a_mode_does_not_see_itself_and_answers_instead():
    class Double(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            made = func(*args, **(kwargs or {}))
            return made * 2 if isinstance(made, pm.Tensor) else made

    x = pm.tensor([1.0])
    with Double():
        assert pm.neg(x).item() == -2.0
    with Seen() as outer, Double():
        pm.neg(x)
    assert outer.names == ["neg", "mul"]


def test_the_last_one_entered_comes_first():
    order = []

    class Named(BaseTorchFunctionMode):
        def __init__(self, name):
            self.name = name

        def __torch_function__(self, func, types, args=(), kwargs=None):
            order.append(self.name)
            return super().__torch_function__(func, types, args, kwargs)

    with Named("outer"), Named("inner"):
        pm.ones(1).neg()
    assert order[-2:] == ["inner", "outer"]


def test_classes_are_asked_after_modes():
    class Own(pm.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "own"

    class Passes(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.types = types
            return NotImplemented

    x = pm.ones(1).as_subclass(Own)
    with Passes() as passes:
        assert pm.neg(x) == "own" and passes.types == (Own,)
        with pytest.raises(TypeError, match="NotImplemented"):
            pm.neg(pm.ones(1))


def test_errors_leave_the_modes_as_they_were():
    class Fails(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise TypeError("not today")

    x = pm.ones(1)
    with pytest.raises(TypeError, match="not today"), Fails():
        x + 1
    assert (x + 1).item() == 2.0
    with Seen() as seen:
        other = threading.Thread(target=lambda: x + 1)
        other.start()
        other.join()
    assert seen.names == []
