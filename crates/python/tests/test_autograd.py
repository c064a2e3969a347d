"""Gradients, modes and exceptions."""

import threading

import pytest

import plimsoll as pm


def test_gradients():
    x = pm.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    assert (y.requires_grad, y.is_leaf, x.is_leaf) == (True, False, True)
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0]
    x.grad = None
    assert x.grad is None


def test_double_backward():
    x = pm.tensor(3.0, dtype=pm.float64, requires_grad=True)
    (first,) = pm.grad([x * x * x], [x], create_graph=True)
    (second,) = pm.grad([first], [x])
    assert (first.item(), second.item()) == (27.0, 18.0)


def test_modes_as_managers_and_decorators():
    x = pm.ones(2, requires_grad=True)
    with pm.no_grad():
        assert not (x * 2).requires_grad
        with pm.enable_grad():
            assert (x * 2).requires_grad
        assert not pm.is_grad_enabled()
    assert pm.is_grad_enabled()

    @pm.no_grad()
    def twice(value):
        return value * 2

    assert not twice(x).requires_grad
    with pytest.raises(ZeroDivisionError), pm.inference_mode():
        assert pm.is_inference_mode_enabled()
        raise ZeroDivisionError
    assert not pm.is_inference_mode_enabled()


def test_a_mode_is_the_threads_own():
    seen = []
    with pm.no_grad():
        thread = threading.Thread(target=lambda: seen.append(pm.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_an_overwritten_saved_tensor_is_named():
    x = pm.ones(2, requires_grad=True)
    y = x.exp()
    loss = y.sum()
    y.mul_(2)
    with pytest.raises(RuntimeError, match="exp"):
        loss.backward()


def test_exceptions_name_the_operation():
    with pytest.raises(RuntimeError, match="matmul"):
        pm.ones(2, 3) @ pm.ones(4, 5)
    with pytest.raises(RuntimeError, match="add"):
        pm.ones(2) + pm.ones(3)
    with pytest.raises(TypeError, match="mean"):
        pm.arange(3).mean()
    with pytest.raises(RuntimeError):
        pm.zeros(2, device="tpu")
    with pytest.raises((RuntimeError, ValueError)):
        pm.zeros(-1)


def test_a_step_of_training():
    pm.manual_seed(0)
    points = pm.randn(64, 3)
    targets = points @ pm.tensor([[1.0], [-2.0], [0.5]])
    weight = pm.zeros(3, 1, requires_grad=True)
    for _ in range(200):
        loss = ((points @ weight - targets) ** 2).mean()
        loss.backward()
        with pm.no_grad():
            weight.sub_(weight.grad, alpha=0.1)
        weight.grad = None
    assert loss.item() < 1e-6


def test_hooks_see_and_replace_gradients():
    x = pm.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    seen = []
    watching = y.register_hook(lambda grad: seen.append(grad.tolist()))
    doubling = x.register_hook(lambda grad: grad * 2)
    y.sum().backward()
    assert (seen, x.grad.tolist()) == ([[1.0, 1.0]], [6.0, 6.0])
    watching.remove()
    doubling.remove()
    doubling.remove()
    x.grad = None
    (x * 3).sum().backward()
    assert (len(seen), x.grad.tolist()) == (1, [3.0, 3.0])


def test_an_exception_of_a_hook_comes_back_as_it_was():
    def refuse(grad):
        raise KeyError("not this one")

    x = pm.ones(2, requires_grad=True)
    handle = x.register_hook(refuse)
    with pytest.raises(KeyError, match="not this one"):
        (x * 2).sum().backward()
    handle.remove()
    wrong = x.register_hook(lambda grad: 3)
    with pytest.raises(TypeError, match="a hook returns a tensor"):
        (x * 2).sum().backward()
    wrong.remove()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        pm.ones(1).register_hook(refuse)


def test_modes_around_generators_and_without_parentheses():
    @pm.no_grad()
    def values():
        try:
            sent = yield pm.is_grad_enabled()
            yield sent, pm.is_grad_enabled()
        except KeyError:
            yield "caught", pm.is_grad_enabled()
        return "end"

    generator = values()
    assert next(generator) is False and pm.is_grad_enabled()
    assert generator.send(3) == (3, False) and pm.is_grad_enabled()
    assert generator.throw(KeyError()) == ("caught", False) and pm.is_grad_enabled()
    with pytest.raises(StopIteration, match="end"):
        next(generator)

    @pm.no_grad
    def twice(value):
        return value * 2

    assert not twice(pm.ones(2, requires_grad=True)).requires_grad and twice.__name__ == "twice"
    with pm.inference_mode(mode=False):
        assert not pm.is_inference_mode_enabled() and pm.is_grad_enabled()
    with pm.inference_mode(), pm.inference_mode(False):
        assert not pm.is_inference_mode_enabled() and pm.is_grad_enabled()


def test_inputs_may_be_one_tensor_but_not_none_at_all():
    x, w = (pm.ones(2, requires_grad=True) for _ in range(2))
    (x * w).sum().backward(inputs=x)
    assert x.grad.tolist() == [1.0, 1.0] and w.grad is None
    number, other = (pm.tensor(3.0, requires_grad=True) for _ in range(2))
    (number * other).backward(inputs=number)
    assert number.grad.item() == 3.0 and other.grad is None
    with pytest.raises(RuntimeError, match="cannot be empty"):
        x.sum().backward(inputs=[])
    with pytest.raises(RuntimeError, match="cannot be empty"):
        pm.autograd.grad(x.sum(), [])


def test_zeros_for_inputs_that_are_not_used():
    x, w = (pm.ones(2, requires_grad=True) for _ in range(2))
    found = pm.autograd.grad(x.sum(), [x, w], materialize_grads=True)
    assert [grad.tolist() for grad in found] == [[1.0, 1.0], [0.0, 0.0]]
    with pytest.raises(ValueError, match="allow_unused"):
        pm.autograd.grad(x.sum(), [x, w], allow_unused=False, materialize_grads=True)


def test_no_tensor_is_its_own_gradient():
    x = pm.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="its own gradient"):
        x.grad = x
    assert x.grad is None


def test_backward_of_several_tensors():
    def gradient(run):
        w = pm.tensor([1.0, 2.0], requires_grad=True)
        run(w)
        return None if w.grad is None else w.grad.tolist()

    backward = pm.autograd.backward
    one, two = pm.ones(2), pm.tensor(2.0)
    assert gradient(lambda w: backward((w * 2).sum())) == [2.0, 2.0]
    assert gradient(lambda w: backward([(w * 2).sum(), (w * 3).sum()])) == [5.0, 5.0]
    assert gradient(lambda w: backward(w * 2, one)) == [2.0, 2.0]
    assert gradient(lambda w: backward([w * 2, w.sum()], [one, None])) == [3.0, 3.0]
    assert gradient(lambda w: backward((w.sum(),), (two,), True, True)) == [2.0, 2.0]
    assert gradient(lambda w: backward(w.sum(), inputs=w)) == [1.0, 1.0]
    assert gradient(lambda w: backward([])) is None
    with pytest.warns(FutureWarning):
        assert gradient(lambda w: backward(w.sum(), grad_variables=[pm.ones([])])) == [1.0, 1.0]
    w = pm.tensor([1.0, 2.0], requires_grad=True)
    s = (w * w).sum()
    backward([s, s], retain_graph=True)
    assert w.grad.tolist() == [4.0, 8.0]
    backward([s])
    assert w.grad.tolist() == [6.0, 12.0]
    for refused in (
        lambda: backward([s]),
        lambda: backward([w * 2, w.sum()], [None, None]),
        lambda: backward([w * 2, w.sum()], [one]),
        lambda: backward([w.sum()], inputs=[]),
        lambda: backward([w.detach().sum()]),
        lambda: backward(w.sum(), one),
        lambda: backward(w.sum(), two, grad_variables=two),
    ):
        with pytest.raises(RuntimeError):
            refused()


def test_deleting_a_gradient():
    w = pm.tensor([1.0, 2.0], requires_grad=True)
    w.sum().backward()
    del w.grad
    assert w.grad is None
    del w.grad
    for name in ("grad_fn", "shape", "abc"):
        with pytest.raises(AttributeError):
            delattr(w, name)


def test_what_was_made_in_inference_mode_is_written_there_only():
    with pm.inference_mode():
        made = pm.ones(2)
        view = made.view(2)
        made.add_(1)
        pm.add(made, made, out=made)
    plain = pm.ones(2)
    with pm.inference_mode():
        of_plain = plain.view(2)
    for write in (
        lambda: made.add_(1),
        lambda: view.mul_(2),
        lambda: made.view(1, 2).add_(1),
        lambda: made.copy_(plain),
        lambda: made.zero_(),
        lambda: made.normal_(),
        lambda: made.__setitem__(0, 5.0),
        lambda: made.__iadd__(1),
        lambda: pm.add(plain, plain, out=made),
        lambda: pm.add(pm.ones(3), 1, out=made),
        lambda: pm.ones(2, out=made),
        lambda: pm.rand(2, out=made),
        lambda: pm.sum(pm.ones(2, 2), 0, out=view),
        lambda: pm.max(pm.ones(2, 2), 0, out=(made, pm.zeros(2, dtype=pm.int64))),
        lambda: pm.cumsum(plain, 0, out=made),
        lambda: pm.matmul(pm.ones(2, 2), plain, out=made),
    ):
        for mode in (pm.enable_grad, pm.no_grad):
            with mode(), pytest.raises(RuntimeError, match="inference tensor outside InferenceMode"):
                write()
    assert made.tolist() == [4.0, 4.0] and made.is_inference() and view.is_inference()
    assert pm.add(plain, plain, out=of_plain) is of_plain and not of_plain.is_inference()
    assert not made.clone().is_inference() and (made + 1).add_(1).tolist() == [6.0, 6.0]
    with pm.inference_mode():
        assert pm.add(plain, plain, out=plain).tolist() == [4.0, 4.0]


def test_graphs_do_not_see_writes_through_data():
    x = pm.full((2,), 3.0, requires_grad=True)
    loss = (x * x).sum()
    x.data.mul_(10)
    x.data[0] = 5.0  # a view of it does not count either
    assert x._version == 0
    loss.backward()
    assert x.grad.tolist() == [10.0, 60.0]

    # It counts its own writes: what a graph saved of it is checked.
    other = x.data
    loss = (pm.ones(2, requires_grad=True) * other).sum()
    other.view(2, 1).add_(1)
    assert (other._version, x._version, x.data._version) == (1, 0, 0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()

    # A write through the original is not one of its own.
    loss = (pm.ones(2, requires_grad=True) * other).sum()
    with pm.no_grad():
        x.mul_(2)
    assert (other._version, x._version) == (1, 1)
    loss.backward()


@pytest.mark.parametrize("name", ["exp_", "relu_", "sigmoid_", "tanh_", "sqrt_", "sin_"])
def test_gradients_of_gradients_through_writes_to_views(name):
    root = pm.tensor([1.5, 0.5, 2.0, 3.0], dtype=pm.float64, requires_grad=True)

    def written(x):
        x = x.clone()
        getattr(x[1:3], name)()
        return x

    def joined(x):
        return pm.cat([x[:1], getattr(x[1:3], name[:-1])(), x[3:]])

    found = []
    for function in (written, joined):
        upper = pm.tensor([1.0, 2.0, 3.0, 4.0], dtype=pm.float64, requires_grad=True)
        (first,) = pm.autograd.grad(function(root), root, upper, create_graph=True)
        found.append([first, *pm.autograd.grad(first.square().sum(), [root, upper])])
    for ours, expected in zip(*found, strict=True):
        assert ours.tolist() == pytest.approx(expected.tolist(), abs=1e-12)
    assert pm.autograd.gradgradcheck(written, [root])
