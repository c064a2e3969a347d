"""What PyTorch's own test files found missing or different: places in the graph, functions, hooks, indices and views."""

import warnings

import plimsoll as pm
import pytest
from plimsoll.autograd import Function, Variable, grad
from plimsoll.autograd.function import InplaceFunction
from plimsoll.autograd.graph import GradientEdge, get_gradient_edge


def leaf(*values):
    return pm.tensor(values, requires_grad=True)


def test_gradients_at_edges_whose_tensors_are_gone():
    x = leaf(1.0, 2.0)
    product = x * 3
    edge = get_gradient_edge(product)
    out = (product * product).sum()
    (at_edge,) = grad(out, (edge,), retain_graph=True)
    assert at_edge.tolist() == [6.0, 12.0]
    del product
    (by_x,) = grad(edge, (x,), grad_outputs=(at_edge,))
    assert by_x.tolist() == [18.0, 36.0]
    pm.autograd.backward(get_gradient_edge((x * 2).sum()))
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        grad(get_gradient_edge(x * 2), (x,))
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        grad(get_gradient_edge(x * 2), (x,), grad_outputs=pm.ones(3))
    with pytest.raises(RuntimeError, match="does not require gradients"):
        get_gradient_edge(pm.ones(1))


def test_an_edge_before_a_write_in_place():
    x = leaf(1.0, 2.0).clone()
    before = GradientEdge(x.grad_fn, x.output_nr)
    x *= 2
    old, new = grad(x.sum(), (before, x))
    assert (old.tolist(), new.tolist()) == ([2.0, 2.0], [1.0, 1.0])
    assert [(tuple(like.shape), like.dtype) for like in x.grad_fn._input_metadata] == [((2,), pm.float32)]
    unused = get_gradient_edge(leaf(1.0).clone())
    with pytest.raises(RuntimeError, match="materialize_grads cannot be used"):
        grad(x.clone().sum(), (x, unused), materialize_grads=True)


def test_inputs_by_name():
    x, y = leaf(1.0), leaf(2.0)
    found = grad((x * y).sum(), {"x": x, "y": y})
    assert {name: value.tolist() for name, value in found.items()} == {"x": [2.0], "y": [1.0]}
    (x * y).sum().backward(inputs={"y": y})
    assert x.grad is None and y.grad.tolist() == [1.0]
    pm.autograd.backward((x * y).sum(), inputs={"x": x})
    assert x.grad.tolist() == [2.0]
    for nothing in ({}, ()):
        with pytest.raises(RuntimeError, match="cannot be empty"):
            grad(x.sum(), nothing)


def test_callbacks_run_when_all_gradients_are_there():
    x, seen = leaf(1.0), []

    def later():
        seen.append(x.grad.tolist())
        if len(seen) == 1:
            Variable._execution_engine.queue_callback(later)

    def hook(gradient):
        Variable._execution_engine.queue_callback(later)
        assert x.grad is None

    x.register_hook(hook)
    (x * 4).sum().backward()
    assert seen == [[4.0], [4.0]]
    with pytest.raises(RuntimeError, match="only be installed during backward"):
        Variable._execution_engine.queue_callback(later)


def test_an_exception_in_a_callback_is_backwards():
    x = leaf(1.0)

    def fail():
        raise KeyError("found nothing")

    x.register_hook(lambda gradient: Variable._execution_engine.queue_callback(fail))
    with pytest.raises(KeyError, match="found nothing"):
        x.sum().backward()
    assert x.grad.tolist() == [1.0]


def test_boxed_gradients():
    class Two(Function):
        boxed_grads_call = True

        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, grads):
            assert isinstance(grads, list) and len(grads) == 2
            first, second = grads
            grads.clear()
            return first * 2 + second * 3

    x = leaf(1.0)
    a, b = Two.apply(x)
    (a + 10 * b).sum().backward()
    assert x.grad.tolist() == [32.0]


def test_setup_context_is_given_defaults():
    class Power(Function):
        @staticmethod
        def forward(x, exponent=3):
            return x**exponent

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.exponent = inputs
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return gradient * ctx.exponent * x ** (ctx.exponent - 1), None

    x = leaf(2.0)
    Power.apply(x).backward()
    assert x.grad.tolist() == [12.0]
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'base'"):
        Power.apply(x, base=2)
    with pytest.raises(TypeError, match="got multiple values for argument 'x'"):
        Power.apply(x, x=x)


def test_functions_are_not_made():
    class Same(InplaceFunction):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            (saved,) = ctx.saved_variables or (None,)
            return gradient

    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        made = Same()
    with pytest.raises(RuntimeError, match="Legacy autograd function"):
        made(leaf(1.0))
    with pytest.warns(DeprecationWarning, match="saved_variables"):
        Same.apply(leaf(1.0)).backward()


def test_warnings_of_gradients_and_modes():
    x = leaf(1.0)
    y = x * 2
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed"):
        assert y.grad is None
    y.retain_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x.grad is None and y.grad is None
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):
        pm.no_grad()(type("Thing", (), {}))


def test_switches_of_the_thread():
    assert not pm.autograd.is_view_replay_enabled()
    with pm.autograd._force_original_view_tracking(True):
        assert pm.autograd.is_view_replay_enabled()
    assert not pm.autograd.is_view_replay_enabled()

    @pm.autograd.set_multithreading_enabled(False)
    def inside():
        return pm.autograd.grad_mode.is_multithreading_enabled()

    assert not inside() and pm.autograd.grad_mode.is_multithreading_enabled()


def test_views_of_everything_are_tensors_of_their_own():
    x = pm.ones(2, 3)
    for whole in (x[:], x[...], x[:, :], x[()]):
        assert whole is not x and whole._base is x and whole._is_view() and not x._is_view()
    base = leaf(1.0).clone()
    first, second = base[:], base[:]
    first.retain_grad()
    second.retain_grad()
    first.mul_(2)
    (first + second).sum().backward()
    assert first.grad.tolist() == second.grad.tolist() == [1.0]
    scalar = pm.tensor(3.0)
    assert scalar[...] is not scalar and scalar[...]._base is scalar


def test_a_reshape_that_copies_is_no_view():
    x = leaf(1.0, 2.0, 3.0, 4.0).reshape(2, 2)
    copied = x.t().reshape(4)
    assert copied._base is None and copied.tolist() == [1.0, 3.0, 2.0, 4.0]
    copied.mul_(2)
    (gradient,) = grad(copied.sum(), x)
    assert gradient.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert pm.ones(5).expand(1, 1, 5).stride() == (5, 5, 1) and pm.ones(5).expand(2, 1, 5).stride() == (0, 5, 1)


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ((0, 5), "index 5 is out of bounds for dimension 1 with size 5"),
        ((4, 5), "index 4 is out of bounds for dimension 0 with size 2"),
        ((slice(None), slice(None), 12), "index 12 is out of bounds for dimension 2 with size 10"),
        ((..., -11), "index -11 is out of bounds for dimension 2 with size 10"),
        ((0, 0, 0, 0), "too many indices for tensor of dimension 3"),
        (([0, 1], [0, 1, 2]), "shape mismatch: indexing tensors could not be broadcast together"),
    ],
)
def test_indices_that_are_not_there(index, words):
    with pytest.raises(IndexError, match=words):
        pm.arange(100).view(2, 5, 10)[index]


def test_other_refusals_of_indices():
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        pm.tensor(1.0)[0]
    with pytest.raises(TypeError, match="slice indices must be integers"):
        pm.ones(3)["a":]
    with pytest.warns(UserWarning, match="uint8 is now deprecated"):
        assert pm.arange(3)[pm.tensor([1, 0, 1], dtype=pm.uint8)].tolist() == [0, 2]
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"):
        pm.ones(2, 2).sum(2)
    with pytest.raises(RuntimeError, match="only supported on matrices"):
        pm.ones(3).mT  # noqa: B018


def test_words_of_autograd():
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place operation"):
        x[:].add_(1)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation: .* is at version 1; expected version 0 instead"):
        y.backward()
    z = x.exp()
    z.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time .* Specify retain_graph=True"):
        z.backward()
    with pytest.raises(RuntimeError, match="not have been used in the graph: .* Set allow_unused=True"):
        grad(x.exp(), leaf(2.0))
    assert repr(x.exp()).endswith("grad_fn=<ExpBackward0>)")


def test_gradcheck_of_a_result_that_changes_its_shape():
    x = pm.ones(1, dtype=pm.float64, requires_grad=True)
    with pytest.raises(AssertionError, match="outputs with the same shape when inputs are perturbed"):
        pm.autograd.gradcheck(lambda x: pm.cat([x, x]) if (x >= 1).all() else x.clone(), (x,))
    with pytest.raises(AssertionError, match="outputs with the same dtype when inputs are perturbed"):
        pm.autograd.gradcheck(lambda x: x.float() if (x >= 1).all() else x.clone(), (x,))
