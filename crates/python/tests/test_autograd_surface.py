"""Modes, anomaly mode, hooks on several tensors, derivatives of functions and their check, each with what PyTorch 2.15
does."""

import subprocess
import sys
import threading

import pytest

import plimsoll as pm
from plimsoll.autograd import functional, graph, gradcheck, gradgradcheck
from plimsoll.autograd.gradcheck import GradcheckError


def leaf(*values):
    return pm.tensor(values, dtype=pm.float64, requires_grad=True)


def test_set_grad_enabled():
    x = leaf(1.0)
    with pm.set_grad_enabled(False):
        assert not (x * 2).requires_grad
        with pm.set_grad_enabled(True):
            assert (x * 2).requires_grad
        assert not pm.is_grad_enabled()
    assert pm.is_grad_enabled()
    pm.set_grad_enabled(False)
    assert not pm.is_grad_enabled()
    pm.set_grad_enabled(True)

    @pm.set_grad_enabled(False)
    def inside():
        return pm.is_grad_enabled()

    assert pm.is_grad_enabled() and not inside() and pm.is_grad_enabled()
    # The mode is the thread's.
    with pm.set_grad_enabled(False):
        seen = []
        thread = threading.Thread(target=lambda: seen.append(pm.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_inference_mode():
    x = leaf(1.0, 2.0)
    with pm.inference_mode():
        made = x * 2
        assert (made.is_inference(), made.requires_grad) == (True, False)
        with pm.enable_grad():
            assert pm.is_grad_enabled() and not (x * 2).requires_grad
        with pm.inference_mode(False):
            normal = x * 2
            assert (normal.is_inference(), normal.requires_grad) == (False, True)
            assert pm.is_grad_enabled() and not pm.is_inference_mode_enabled()
        assert pm.is_inference_mode_enabled()
        made.add_(1)
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter."):
        made._version
    with pytest.raises(RuntimeError, match="inference tensor outside InferenceMode"):
        made.add_(1)
    with pytest.raises(RuntimeError, match="inference tensor outside InferenceMode"):
        pm.add(pm.ones(2, dtype=pm.float64), 1, out=made)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * made
    assert (x + made).requires_grad
    with pm.no_grad(), pm.inference_mode(False):
        assert pm.is_grad_enabled()


def test_retains_grad_and_output_nr():
    x = leaf(3.0, 1.0)
    values, indices = x.sort()
    assert (values.retains_grad, values.output_nr, x.output_nr) == (False, 0, 0)
    values.retain_grad()
    x.retain_grad()
    assert (values.retains_grad, x.retains_grad) == (True, False)
    first, second = (x * 2).unbind()
    assert (first.output_nr, second.output_nr) == (0, 1) or second.grad_fn is not first.grad_fn


def test_anomaly_mode_names_the_forward_line():
    x = leaf(-1.0)
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        mode = pm.autograd.detect_anomaly()
    with mode:
        y = x.sqrt()  # the line
        with pytest.raises(RuntimeError, match=r"Function 'SqrtBackward0' returned nan values in its 0th output") as caught:
            y.backward()
    assert "test_autograd_surface.py" in str(caught.value)
    assert "test_anomaly_mode_names_the_forward_line" in str(caught.value)
    x.sqrt().backward()  # off again
    with pm.autograd.set_detect_anomaly(True, check_nan=False):
        assert pm.is_anomaly_enabled() and not pm.is_anomaly_check_nan_enabled()
        x.sqrt().backward()
    assert not pm.is_anomaly_enabled() and pm.is_anomaly_check_nan_enabled()


def test_hooks_on_several_tensors():
    a, b = leaf(2.0), leaf(3.0)
    c, d = a * b, a * b
    seen = []

    def all_of(grads):
        seen.append([grad is not None for grad in grads])

    handle = graph.register_multi_grad_hook((a, b, c, d), all_of)
    # As PyTorch's documentation has it.
    c.sum().backward(retain_graph=True)
    c.sum().backward(inputs=(a,), retain_graph=True)
    assert seen == [[True, True, True, False], [True, False, True, False]]
    handle.remove()
    c.sum().backward(retain_graph=True)
    assert len(seen) == 2
    first = []
    with graph.register_multi_grad_hook((a, b, c), first.append, mode="any"):
        c.sum().backward(retain_graph=True)
        pm.autograd.grad(d.sum(), a, retain_graph=True)
    assert [grad.tolist() for grad in first] == [[1.0], [3.0]]
    with pytest.raises(ValueError, match="Expects mode to be one of"):
        graph.register_multi_grad_hook((a,), print, mode="some")

    def fails(grads):
        raise KeyError("mine")

    graph.register_multi_grad_hook((a, b), fails)
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            c.sum().backward(retain_graph=True)


def test_a_graph_written_down():
    x = pm.ones(256, requires_grad=True)
    y = x.exp().sum()
    text = graph.graph_text(y).splitlines()
    assert text[0].startswith("#0 sum of #1, holds 0 bytes: ")
    assert text[1].startswith("#1 exp of leaf [256], holds 1024 bytes in 1 storage: ")
    assert "test_autograd_surface.py" in text[1] and text[2] == "2 operations hold 1024 bytes"
    dot = graph.graph_dot(y)
    assert dot.startswith("digraph") and "n0 -> n1;" in dot and "holds 1024 bytes" in dot


def cubes(x, y):
    return (x**3 * y).sum()


X, Y, V, U = (1.0, 2.0), (3.0, 5.0), (1.0, -1.0), (2.0, 0.5)


def test_products():
    x, y, v, u = (pm.tensor(values, dtype=pm.float64) for values in (X, Y, V, U))
    out, (dx, dy) = functional.vjp(lambda x, y: x**3 * y, (x, y), v)
    assert (out.tolist(), dx.tolist(), dy.tolist()) == ([3.0, 40.0], [9.0, -60.0], [1.0, -8.0])
    out, product = functional.jvp(lambda x, y: x**3 * y, (x, y), (v, u))
    assert (out.tolist(), product.tolist()) == ([3.0, 40.0], [9.0 + 2.0, -60.0 + 4.0])
    assert not product.requires_grad
    # The Hessian of x^3 y has 6xy on the diagonal and 3x^2 beside it.
    expected = ([18 * 1.0 + 3 * 2.0, 60 * -1.0 + 12 * 0.5], [3 * 1.0, 12 * -1.0])
    for product in (functional.hvp, functional.vhp):
        out, found = product(cubes, (x, y), (v, u))
        assert out.item() == 43.0 and tuple(part.tolist() for part in found) == expected
    out, found = functional.hvp(lambda x: (x**3).sum(), x, v, create_graph=True)
    assert found.tolist() == [6.0, -12.0]
    x.requires_grad_()
    _, found = functional.vjp(lambda x: (x**3).sum(), x, create_graph=True)
    assert found.requires_grad and pm.autograd.grad(found.sum(), x)[0].tolist() == [6.0, 12.0]


def test_jacobians_and_hessians():
    x, y = pm.tensor(X, dtype=pm.float64), pm.tensor(Y, dtype=pm.float64)
    found = functional.jacobian(lambda x: x**2, x)
    assert found.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    by_x, by_y = functional.jacobian(cubes, (x, y))
    assert (by_x.tolist(), by_y.tolist()) == ([9.0, 60.0], [1.0, 8.0])
    (first, second) = functional.jacobian(lambda x: (x.sum(), x * 2), x)
    assert (first.tolist(), second.tolist()) == ([1.0, 1.0], [[2.0, 0.0], [0.0, 2.0]])
    ((xx, xy), (yx, yy)) = functional.hessian(cubes, (x, y))
    assert xx.tolist() == [[18.0, 0.0], [0.0, 60.0]]
    assert xy.tolist() == yx.tolist() == [[3.0, 0.0], [0.0, 12.0]]
    assert yy.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert functional.hessian(lambda x: (x**3).sum(), x, vectorize=True).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    assert functional.jacobian(lambda x: x[:0], x).shape == (0, 2)


def test_derivatives_that_are_refused():
    x = pm.tensor(X, dtype=pm.float64)
    with pytest.raises(TypeError, match="The inputs given to vjp must be either a Tensor or a tuple of Tensors"):
        functional.vjp(lambda x: x, 1.0)
    with pytest.raises(RuntimeError, match="The vector v can only be None if the user-provided function returns"):
        functional.vjp(lambda x: x * 2, x)
    with pytest.raises(RuntimeError, match="v has invalid size: should be"):
        functional.vjp(lambda x: x * 2, x, pm.ones(3))
    with pytest.raises(RuntimeError, match="should contain a single element"):
        functional.hessian(lambda x: x * 2, x)
    with pytest.raises(RuntimeError, match="The output of the user-provided function is independent of input 0"):
        functional.vjp(lambda x: pm.ones(1, requires_grad=True) * 2, x, pm.ones(1), strict=True)
    with pytest.raises(RuntimeError, match="Output 0 of the user-provided function does not require gradients"):
        functional.jacobian(lambda x: pm.ones(1), x, strict=True)
    with pytest.raises(RuntimeError, match="jacobian of the user-provided function with respect to input 0 is independent"):
        functional.vhp(lambda x: x.sum(), x, pm.ones(2), strict=True)


class Wrong(pm.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0] * 3


def test_gradcheck():
    x, y = leaf(0.3, -0.7), leaf(1.5, 2.0)
    assert gradcheck(lambda x, y: (x.sin() * y, x.exp()), (x, y))
    assert gradgradcheck(lambda x, y: (x.sin() * y, x.exp()), (x, y))
    assert gradgradcheck(lambda x: x.exp() * x, x, gen_non_contig_grad_outputs=True)
    with pytest.raises(GradcheckError, match="(?s)Jacobian mismatch for output 0 with respect to input 0,\nnumerical:.*analytical:"):
        gradcheck(Wrong.apply, x)
    assert not gradcheck(Wrong.apply, x, raise_exception=False)
    assert issubclass(GradcheckError, RuntimeError)
    with pytest.raises(ValueError, match="gradcheck expects at least one input tensor to require gradient"):
        gradcheck(pm.exp, pm.ones(2))
    with pytest.warns(UserWarning, match="is not a double precision floating point"):
        gradcheck(pm.exp, pm.ones(2, requires_grad=True), eps=1e-2, atol=1e-1)
    with pytest.raises(RuntimeError, match="has a dimension with stride 0"):
        gradcheck(pm.exp, leaf(1.0).expand(2))


def test_a_gradient_of_another_dtype_becomes_the_tensors():
    x = pm.ones(3, requires_grad=True)
    (x * 2).backward(pm.full((3,), 0.5, dtype=pm.float64))
    assert x.grad.dtype is pm.float32 and x.grad.tolist() == [1.0, 1.0, 1.0]
    (found,) = pm.autograd.grad(x * 2, x, pm.ones(3, dtype=pm.float64))
    assert found.dtype is pm.float32 and found.tolist() == [2.0, 2.0, 2.0]
    half = x.to(pm.bfloat16)
    pm.autograd.backward([half, x * 2], [pm.ones(3), pm.ones(3, dtype=pm.float16)])
    assert x.grad.dtype is pm.float32 and x.grad.tolist() == [4.0, 4.0, 4.0]


def test_several_gradients_at_once():
    x, unused = leaf(1.0, 2.0, 3.0), leaf(1.0)
    y = x * x
    (jacobian,) = pm.autograd.grad(y, x, pm.eye(3, dtype=pm.float64), is_grads_batched=True)
    assert jacobian.tolist() == [[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 6.0]]
    with pytest.raises(RuntimeError, match="second time"):
        pm.autograd.grad(y.sum(), x)
    found = pm.autograd.grad(
        x.exp().sum(), [x, unused], pm.tensor([1.0, 2.0], dtype=pm.float64), is_grads_batched=True, allow_unused=True
    )
    assert found[0].shape == (2, 3) and found[1] is None
    assert found[0][1].equal(2 * x.exp())
    with pytest.raises(RuntimeError, match="counts gradients"):
        pm.autograd.grad([x * 1, x * 2], x, [pm.ones(2, 3), pm.ones(4, 3)], is_grads_batched=True)
    with pytest.raises(RuntimeError, match="shape"):
        pm.autograd.grad(x * 1, x, pm.ones(2, 4), is_grads_batched=True)


def test_gradients_that_are_recorded_are_warned_of_once():
    program = """
import warnings, plimsoll as pm
x = pm.ones(1, requires_grad=True)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    (x * 2).sum().backward(create_graph=True)
    pm.autograd.backward((x * 2).sum(), create_graph=True)
    pm.autograd.grad((x * 2).sum(), x, create_graph=True)
assert len(told) == 1 and told[0].category is UserWarning, told
assert "reference cycle" in str(told[0].message) and told[0].lineno == 6, told[0]
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_gradcheck_of_batches_and_of_what_is_no_tensor():
    x = pm.ones(2, dtype=pm.float64, requires_grad=True)
    assert gradcheck(lambda x, y: (x * 2, y.sum() * x), (x, x), check_batched_grad=True)
    assert gradgradcheck(lambda x: x**3, x, check_batched_grad=True)

    class Batched(pm.autograd.Function):
        calls = 0

        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            # Right in the two rounds of one output's elements, wrong in the batch that comes between them.
            Batched.calls += 1
            return grad * (3 if Batched.calls in (5, 6) else 2)

    with pytest.raises(GradcheckError, match="batched gradient"):
        gradcheck(Batched.apply, x, check_batched_grad=True, check_undefined_grad=False)
    for given, name in ((3, "int"), (None, "NoneType")):
        with pytest.raises(AttributeError, match=f"'{name}' object has no attribute 'requires_grad'"):
            gradcheck(lambda x: given, x)
    with pytest.raises(AssertionError, match="requires check_backward_ad"):
        gradcheck(lambda x: x, x, check_batched_grad=True, check_backward_ad=False, check_forward_ad=True)
