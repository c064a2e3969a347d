"""Custom functions, each with what PyTorch 2.15 does."""

import gc
import traceback

import pytest

import plimsoll as pm
from collecting import collected
from plimsoll.autograd import Function
from plimsoll.autograd.function import once_differentiable


class Power(Function):
    @staticmethod
    def forward(ctx, x, exponent):
        ctx.save_for_backward(x)
        ctx.exponent = exponent
        return x.pow(exponent)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.pow(ctx.exponent - 1) * ctx.exponent, None


def leaf(*values):
    return pm.tensor(values, dtype=pm.float64, requires_grad=True)


def answering(answer, forward=lambda *args: args[0] * 2):
    """A function whose backward gives `answer(grad)`."""

    class Answering(Function):
        @staticmethod
        def forward(ctx, *args):
            return forward(*args)

        @staticmethod
        def backward(ctx, *grads):
            return answer(*grads)

    return Answering


def test_values_and_gradients_with_a_number_among_the_arguments():
    x = leaf(1.0, 2.0)
    y = Power.apply(x, 3)
    assert (y.tolist(), y.requires_grad, y.is_leaf) == ([1.0, 8.0], True, False)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 12.0]


def test_double_backward():
    x = leaf(2.0)
    (first,) = pm.autograd.grad(Power.apply(x, 3), x, create_graph=True)
    (second,) = pm.autograd.grad(first, x, create_graph=True)
    (third,) = pm.autograd.grad(second, x)
    assert (first.item(), second.item(), third.item()) == (12.0, 12.0, 6.0)


def test_the_context_is_set_up_apart_from_forward():
    class Scaled(Function):
        @staticmethod
        def forward(x, factor):
            return x * factor, "text"

        @staticmethod
        def setup_context(ctx, inputs, output):
            assert not pm.is_grad_enabled() and output[1] == "text"
            ctx.factor = inputs[1]

        @staticmethod
        def backward(ctx, grad, nothing):
            assert nothing is None
            return grad * ctx.factor, None

    x = leaf(1.0)
    y, text = Scaled.apply(x, 4.0)
    assert (y.item(), text) == (4.0, "text")
    y.backward()
    assert x.grad.item() == 4.0


def test_arguments_by_name_find_their_place():
    x = leaf(2.0)
    y = Power.apply(x, exponent=2)
    y.backward()
    assert x.grad.item() == 4.0
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        Power.apply(x, 2, other=1)
    with pytest.raises(TypeError, match="missing"):
        Power.apply()


def test_which_arguments_need_gradients():
    seen = []

    class Product(Function):
        @staticmethod
        def forward(ctx, a, number, b):
            seen.append(ctx.needs_input_grad)
            ctx.save_for_backward(a, b)
            return a * b * number

        @staticmethod
        def backward(ctx, grad):
            # As forward saw it, whatever this run asks for.
            seen.append(ctx.needs_input_grad)
            a, b = ctx.saved_tensors
            return grad * b * 2.0, None, grad * a * 2.0

    a, b = leaf(1.0), leaf(3.0)
    (found,) = pm.autograd.grad(Product.apply(a, 2.0, b), b)
    assert found.item() == 2.0 and seen == [(True, False, True)] * 2
    with pm.no_grad():
        assert not Product.apply(a, 2.0, b).requires_grad
    assert seen[2:] == [(True, False, True)]


def test_nodes_are_named_and_show_the_context():
    x = leaf(2.0)
    y = Power.apply(x, 3)
    node = y.grad_fn
    assert (node.name(), repr(node).split()[0], y.grad_fn is node) == ("PowerBackward", "<PowerBackward", True)
    assert node.exponent == 3 and node.saved_tensors[0] is x
    (behind,) = node.next_functions
    assert (behind[0].name(), behind[0].variable is x, behind[1]) == ("torch::autograd::AccumulateGrad", True, 0)
    with pytest.raises(AttributeError):
        node.nothing
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        node.saved_tensors


def test_saving_none_results_and_what_is_no_tensor():
    class Saving(Function):
        @staticmethod
        def forward(ctx, x, more):
            assert ctx.saved_tensors == ()
            y = x.exp()
            ctx.save_for_backward(None, y, *more)
            return y

        @staticmethod
        def backward(ctx, grad):
            nothing, y = ctx.saved_tensors
            assert nothing is None
            return grad * y, None

    x = leaf(0.0)
    (first,) = pm.autograd.grad(Saving.apply(x, ()), x, create_graph=True)
    (second,) = pm.autograd.grad(first, x)
    assert (first.item(), second.item()) == (1.0, 1.0)
    with pytest.raises(TypeError, match="save_for_backward .* int"):
        Saving.apply(x, (3,))


def test_an_overwritten_saved_tensor_and_a_second_backward():
    x = leaf(1.0)
    z = x * 1
    y = Power.apply(z, 2)
    z.mul_(2)
    with pytest.raises(RuntimeError, match="PowerBackward.*overwritten"):
        y.backward()
    y = Power.apply(x, 2)
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    # What saves nothing can run again.
    y = answering(lambda grad: grad * 2).apply(x)
    y.backward()
    y.backward()


def test_tuples_lists_and_other_results():
    many = answering(lambda *grads: grads[0] + (grads[3] if grads[3] is not None else 0), lambda x: (x * 2, None, "a", x * 3))
    x = leaf(1.0)
    first, nothing, text, last = many.apply(x)
    assert (first.item(), nothing, text, last.item()) == (2.0, None, "a", 3.0)
    first.backward()
    assert x.grad.item() == 1.0  # zeros came for the other
    # As in PyTorch a list is one thing that is no tensor, so nothing is recorded.
    listed = answering(lambda grad: grad, lambda x: [x * 2]).apply(x)
    assert isinstance(listed, list) and not listed[0].requires_grad
    assert answering(lambda grad: grad, lambda x: 5).apply(x) == 5
    assert answering(lambda grad: grad, lambda x: None).apply(x) is None
    assert answering(lambda grad: grad, lambda x: ()).apply(x) == ()


def test_zeros_or_none_for_what_has_no_gradient():
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            seen.append((a, b))
            return a * 2, None

    x = leaf(1.0)
    Two.apply(x, True)[0].backward()
    Two.apply(x, False)[0].backward()
    assert seen[0][1].tolist() == [0.0] and seen[1][1] is None


def test_backward_runs_though_nothing_arrives():
    seen = []

    def look(grad):
        seen.append(grad.tolist())
        return grad

    x = leaf(1.0)
    nothing = answering(lambda grad: None)
    nothing.apply(answering(look).apply(x).exp()).backward()
    assert seen == [[0.0]] and x.grad.tolist() == [0.0]


def test_results_without_a_derivative():
    class Sorted(Function):
        @staticmethod
        def forward(ctx, x):
            fixed = x * 1
            ctx.mark_non_differentiable(fixed)
            return fixed, x > 0, x * 3

        @staticmethod
        def backward(ctx, *grads):
            assert [grad.dtype for grad in grads] == [pm.float64, pm.bool, pm.float64]
            assert [grad.tolist() for grad in grads] == [[0.0], [False], [1.0]]
            return grads[2] * 3

    x = leaf(1.0)
    results = Sorted.apply(x)
    assert [result.requires_grad for result in results] == [False, False, True]
    results[2].backward()
    assert x.grad.item() == 3.0


def test_arguments_written_in_place():
    class Doubled(Function):
        @staticmethod
        def forward(ctx, x, give=True):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x if give else x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad * 2, None

    x = leaf(1.0)
    y = x * 1
    z = Doubled.apply(y)
    assert z is y and y.grad_fn.name() == "DoubledBackward"
    z.backward()
    assert x.grad.item() == 2.0
    with pytest.raises(RuntimeError, match="leaf"):
        Doubled.apply(leaf(1.0))
    with pytest.raises(RuntimeError, match="must be returned"):
        Doubled.apply(x * 1, False)
    base = leaf(1.0, 1.0) * 1
    part = base[:1]
    assert Doubled.apply(part) is part and base.tolist() == [2.0, 1.0]

    class Odd(Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.mark_dirty(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    # No argument, so there is nothing to be dirty of; PyTorch lets it pass too.
    y = Odd.apply(x)
    assert y.requires_grad and y.item() == 2.0


def test_a_returned_argument_that_is_written_later_is_refused():
    function = answering(lambda grad: grad * 5, lambda x: x)
    base = leaf(1.0) * 1
    y = function.apply(base)
    base.mul_(2)
    for use in (lambda: y.exp(), lambda: y.retain_grad(), lambda: y.register_hook(print), lambda: y.backward()):
        with pytest.raises(RuntimeError, match="written since"):
            use()


@pytest.mark.parametrize("forward", [lambda x: x, lambda x: x.view(-1), lambda x: x[0:2]])
def test_an_argument_or_a_view_of_it_as_the_result(forward):
    function = answering(lambda grad: grad * 5, forward)
    x = leaf(1.0, 2.0)
    y = function.apply(x)
    assert y is not x and y._base is x and y.data_ptr() == x.data_ptr()
    assert y.grad_fn.name() == "AnsweringBackward"
    y.sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]
    with pytest.raises(RuntimeError):
        function.apply(x * 1).add_(1)


def test_an_argument_that_comes_back_without_a_derivative_leaves_the_graph():
    class Fixed(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_non_differentiable(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad

    for x in (leaf(1.0), leaf(1.0) * 1):
        with pm.no_grad():
            same = answering(lambda grad: grad, lambda x: x).apply(x)
        for y in (same, Fixed.apply(x)):
            assert (y is x, y.requires_grad, y.is_leaf, y._base) == (False, False, True, None)
            assert y.data_ptr() == x.data_ptr()


def test_wrong_gradients():
    x = leaf(1.0, 2.0)

    def grads(answer, *more):
        x.grad = None
        answering(answer).apply(x, *more).sum().backward()
        return x.grad

    with pytest.raises(RuntimeError, match="2 gradients for 1"):
        grads(lambda grad: (grad, grad))
    with pytest.raises(RuntimeError, match="0 gradients for 1"):
        grads(lambda grad: ())
    with pytest.raises(RuntimeError, match="1 gradients for 2"):
        grads(lambda grad: grad, 3.0)
    with pytest.raises(RuntimeError, match="argument 1 .* no tensor"):
        grads(lambda grad: (grad, grad), 3.0)
    for odd in (3, "a", [1]):
        with pytest.raises(RuntimeError, match=type(odd).__name__):
            grads(lambda grad, odd=odd: odd)
    with pytest.raises(RuntimeError, match=r"got \[1\] .* compatible with \[2\]"):
        grads(lambda grad: grad[:1])
    with pytest.raises(RuntimeError, match=r"index 0 - got \[2\] on .* expected shape compatible with \[2\] on cpu"):
        grads(lambda grad: pm.ones(2, device=pm.private_cpu()))
    # Converted, summed over what was stretched, or none.
    assert grads(lambda grad: grad.float()).dtype == pm.float64
    assert grads(lambda grad: grad.long()).tolist() == [1.0, 1.0]
    assert grads(lambda grad: grad.expand(3, 2)).tolist() == [3.0, 3.0]
    assert grads(lambda grad: (grad, None)).tolist() == [1.0, 1.0]
    assert grads(lambda grad: None) is None


def test_a_wrong_gradient_that_nobody_asked_for():
    product = answering(lambda grad: (grad, pm.ones(5)), lambda a, b: a * b)
    a, b = leaf(1.0, 2.0), leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=r"got \[5\]"):
        pm.autograd.grad(product.apply(a, b).sum(), a)


def test_differentiable_once():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            assert not pm.is_grad_enabled()
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    x = leaf(3.0)
    Once.apply(x).backward()
    assert x.grad.item() == 6.0
    weight = leaf(1.0)
    (found,) = pm.autograd.grad(Once.apply(x) * weight, x, create_graph=True)
    assert found.item() == 6.0 and found.requires_grad
    with pytest.raises(RuntimeError, match="once_differentiable"):
        found.backward()


def test_exceptions_reach_the_caller_with_their_traceback():
    device = pm.private_cpu()

    class Failing(Function):
        @staticmethod
        def forward(ctx, x, fails):
            kept = x * 2
            if fails:
                raise LookupError("in forward")
            ctx.save_for_backward(kept)
            return kept

        @staticmethod
        def backward(ctx, grad):
            raise ZeroDivisionError("in backward")

    def lines(error):
        return "".join(traceback.format_tb(error.value.__traceback__))

    x = pm.ones(4, device=device, requires_grad=True)
    with pytest.raises(LookupError, match="in forward") as error:
        Failing.apply(x, True)
    assert 'raise LookupError("in forward")' in lines(error)
    with pytest.raises(ZeroDivisionError, match="in backward") as error:
        Failing.apply(x, False).sum().backward()
    assert 'raise ZeroDivisionError("in backward")' in lines(error)
    del error
    gc.collect()
    assert pm.memory_allocated(device) == 512
    del x
    assert pm.memory_allocated(device) == 0


def test_what_is_missing():
    class Empty(Function):
        pass

    class OneWay(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    class Both(Power):
        @staticmethod
        def vjp(ctx, grad):
            return grad, None

    class Vjp(OneWay):
        @staticmethod
        def vjp(ctx, grad):
            return grad * 2

    x = leaf(1.0)
    with pytest.raises(NotImplementedError):
        Empty.apply(x)
    with pytest.raises(NotImplementedError):
        OneWay.apply(x).backward()
    with pytest.raises(RuntimeError, match="not both"):
        Both.apply(x, 2)
    Vjp.apply(x).backward()
    assert x.grad.item() == 2.0


def test_bytes_are_booked_on_the_lines_of_the_user():
    device = pm.private_cpu()
    x = pm.ones(1024, device=device, requires_grad=True)
    y = Power.apply(x, 2)
    files = {row["file"] for row in pm.memory_by_line(device)}
    assert files == {__file__}
    y.sum().backward()
    assert {row["file"] for row in pm.memory_by_line(device)} == {__file__}
    assert "saved" in " ".join(pm.memory_by_kind(device)) or x.grad is not None


class Keeping(Function):
    @staticmethod
    def forward(ctx, x, box):
        ctx.box = box
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2, None


def test_a_context_that_points_to_its_result_is_collected():
    def direct(device):
        box = []
        y = Keeping.apply(pm.ones(4, device=device, requires_grad=True), box)
        box.append(y)
        return y

    def further(device):
        box = []
        y = Keeping.apply(pm.ones(4, device=device, requires_grad=True), box).exp().sum()
        box.append(y)
        return y

    assert collected(direct) and collected(further)


def test_without_a_cycle_nothing_waits_for_the_collector():
    gc.disable()
    try:
        device = pm.private_cpu()
        y = Power.apply(pm.ones(4, device=device, requires_grad=True), 2).sum()
        y.backward()
        del y
        assert pm.memory_allocated(device) == 0
    finally:
        gc.enable()


def test_a_live_result_keeps_its_context():
    box = []
    y = Keeping.apply(leaf(1.0), box)
    box.append(y)
    gc.collect()
    assert y.grad_fn.box is box and box[0] is y


def test_long_chains_are_dropped():
    class Holding(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x = x
            return x + 1

        @staticmethod
        def backward(ctx, grad):
            return grad

    x = y = leaf(0.0)
    for _ in range(20_000):
        y = Holding.apply(y)
    y.backward()
    assert x.grad.item() == 1.0
    del y
    gc.collect()


def test_a_function_inside_a_function_and_a_backward_inside_backward():
    class Outer(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return Power.apply(x, 2)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            with pm.enable_grad():
                again = x.detach().requires_grad_()
                Power.apply(again, 2).sum().backward()
            return grad * again.grad

    x = leaf(3.0)
    Outer.apply(x).backward()
    assert x.grad.item() == 6.0


def test_what_has_no_derivative_comes_out_of_the_graph():
    class Same(Function):
        @staticmethod
        def forward(ctx, x, fixed, dirty):
            if fixed:
                ctx.mark_non_differentiable(x)
            if dirty:
                ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad, None, None

    x = leaf(1.0, 2.0)
    for before in (x, x * 1):
        with pm.no_grad():
            results = [Same.apply(before, False, False), Same.apply(before, False, True)]
        results.append(Same.apply(before, True, False))
        for result in results:
            assert (result is before, result.requires_grad, result._base) == (False, False, None)
            assert result.data_ptr() == before.data_ptr() and before.requires_grad


def test_a_dirty_input_counts_as_written():
    class Claims(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad

    x = leaf(1.0, 2.0)
    y = x * 1
    square = y * y
    assert Claims.apply(y) is y and y._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.sum().backward()


@pytest.mark.parametrize("boxed", [False, True])
def test_backward_can_be_called_through_the_node(boxed):
    class Twice(Function):
        boxed_grads_call = boxed

        @staticmethod
        def forward(ctx, x):
            return 2 * x, 3 * x

        @staticmethod
        def backward(ctx, *grads):
            first, second = grads[0] if boxed else grads
            return 2 * first + 3 * second

    first, _ = Twice.apply(leaf(1.0, 2.0))
    assert first.grad_fn.apply(pm.ones(2), pm.full((2,), 10.0)).tolist() == [32.0, 32.0]
