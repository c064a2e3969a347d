"""Nodes of the graph and hooks, each with what PyTorch 2.15 does."""

import gc
import math

import pytest

import plimsoll as pm
from collecting import collected
from plimsoll.autograd import graph


def leaf(*values):
    return pm.tensor(values, dtype=pm.float64, requires_grad=True)


def test_nodes():
    x = leaf(1.0, 2.0)
    y = x.exp() * 2
    node = y.grad_fn
    assert (node.name(), x.grad_fn) == ("MulBackward0", None)
    assert y.grad_fn is node and hash(node) == hash(y.grad_fn)
    (exp, output), *_ = node.next_functions
    assert (exp.name(), output, isinstance(exp, graph.Node)) == ("ExpBackward0", 0, True)
    ((accumulate, _),) = exp.next_functions
    assert (accumulate.name(), accumulate.variable is x, accumulate.next_functions) == ("torch::autograd::AccumulateGrad", True, ())
    assert (x * 2).grad_fn.next_functions[0][0] is accumulate
    with pytest.raises(AttributeError):
        node.variable
    values, _ = x.sort()
    assert values.grad_fn.name() == "SortBackward0"
    # A node keeps what lies behind it.
    del y, exp, accumulate, values
    assert node.next_functions[0][0].name() == "ExpBackward0"


def test_a_leaf_that_nobody_holds_is_said_to_be_gone():
    x = leaf(1.0, 2.0)
    y = x * 2
    accumulate = y.grad_fn.next_functions[0][0]
    del x
    with pytest.raises(AttributeError, match="nobody holds the leaf"):
        accumulate.variable


def test_edges():
    x = leaf(1.0)
    edge = graph.get_gradient_edge(x)
    assert (edge.node.name(), edge.output_nr) == ("torch::autograd::AccumulateGrad", 0)
    y = x * 2
    assert graph.get_gradient_edge(y).node is y.grad_fn
    with pytest.raises(RuntimeError, match="does not require"):
        graph.get_gradient_edge(pm.ones(1))


def test_hooks_of_nodes():
    x = leaf(1.0)
    y = x * 2
    seen = []
    before = y.grad_fn.register_prehook(lambda grads: seen.append(("before", [g.item() for g in grads])))
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append(("after", inputs[0].item(), outputs[0].item())))
    y.backward(retain_graph=True)
    assert seen == [("before", [1.0]), ("after", 2.0, 1.0)]
    before.remove()
    before.remove()
    y.backward()
    assert [entry[0] for entry in seen] == ["before", "after", "after"]


def test_hooks_of_nodes_replace_gradients():
    x = leaf(1.0)
    y = x * 2
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
    y.grad_fn.register_hook(lambda inputs, outputs: tuple(None if g is None else g + outputs[0] for g in inputs))
    y.backward()
    assert x.grad.item() == 30.0
    for wrong, error in ((3, TypeError), (leaf(1.0), TypeError), ((None,) * 5, RuntimeError), ((3,), TypeError)):
        for register in ("register_hook", "register_prehook"):
            y = x * 2
            getattr(y.grad_fn, register)(lambda *_, wrong=wrong: wrong)
            with pytest.raises(error, match="hook"):
                y.backward()


def test_hooks_after_accumulation():
    x = leaf(1.0, 2.0)
    seen = []

    def step(parameter):
        assert parameter is x
        seen.append(parameter.grad.tolist())
        parameter.grad = None

    handle = x.register_post_accumulate_grad_hook(step)
    (x * 3).sum().backward()
    (x * 4).sum().backward()
    assert (seen, x.grad) == ([[3.0, 3.0], [4.0, 4.0]], None)
    handle.remove()
    (x * 4).sum().backward()
    assert len(seen) == 2
    with pytest.raises(RuntimeError, match="leaf"):
        (x * 2).register_post_accumulate_grad_hook(step)
    with pytest.raises(RuntimeError):
        pm.ones(1).register_post_accumulate_grad_hook(step)
    with x.register_post_accumulate_grad_hook(lambda parameter: 5):
        with pytest.raises(TypeError, match="expected Variable, but hook returned 'int'"):
            x.sum().backward()
    x.register_post_accumulate_grad_hook(lambda parameter: parameter.detach())
    with pytest.raises(RuntimeError, match="should return None"):
        x.sum().backward()


def test_a_handle_is_a_context_manager():
    x = leaf(1.0)
    seen = []
    with x.register_hook(seen.append):
        x.sum().backward()
    x.sum().backward()
    assert len(seen) == 1


def test_hooks_where_there_is_no_gradient():
    class Two(pm.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            return None

    x, seen = leaf(1.0), []
    x.register_hook(lambda grad: seen.append(("leaf", grad)))
    first, second = Two.apply(x)
    second.register_hook(lambda grad: seen.append(("second", grad)))
    first.grad_fn.register_prehook(lambda grads: seen.append(("node", grads[1])))
    first.backward()
    assert seen == [("second", None), ("node", None), ("leaf", None)] and x.grad is None
    first, second = Two.apply(x)
    second.register_hook(lambda grad: pm.ones(1))
    with pytest.raises(RuntimeError, match="where there is none"):
        first.backward()


def test_exceptions_of_hooks():
    def refuse(*_):
        raise LookupError("no")

    x = leaf(1.0)
    for register in ("register_hook", "register_prehook"):
        y = x * 2
        getattr(y.grad_fn, register)(refuse)
        with pytest.raises(LookupError, match="no"):
            y.backward()
    x.register_post_accumulate_grad_hook(refuse)
    with pytest.raises(LookupError, match="no"):
        (x * 2).backward()


def node_hook(device):
    y = pm.ones(4, device=device, requires_grad=True) * 2
    y.grad_fn.register_hook(lambda inputs, outputs: y)
    return y


def node_prehook(device):
    y = (pm.ones(4, device=device, requires_grad=True) * 2).exp()
    y.grad_fn.next_functions[0][0].register_prehook(lambda outputs: y)
    return y


def accumulated_hook(device):
    x = pm.ones(4, device=device, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda parameter: x.shape and None)
    (x * 2).sum().backward()
    return x


def hook_of_a_node_that_is_kept(device):
    y = pm.ones(4, device=device, requires_grad=True).exp()
    node = y.grad_fn
    node.register_hook(lambda inputs, outputs: node)
    return node


@pytest.mark.parametrize("make", [node_hook, node_prehook, accumulated_hook, hook_of_a_node_that_is_kept])
def test_hooks_that_use_what_they_are_on_are_collected(make):
    assert collected(make)


def test_saved_tensors_hooks():
    x = leaf(1.0, 2.0)
    log = []

    def pack(tensor):
        log.append(("pack", tensor.tolist(), pm.is_grad_enabled()))
        return [tensor.float()]

    def unpack(packed):
        log.append(("unpack", packed[0].tolist()))
        return packed[0].double()

    with graph.saved_tensors_hooks(pack, unpack):
        y = x.exp()
    y.sum().backward()
    first = y.tolist()
    assert log[0] == ("pack", first, False) and log[1][0] == "unpack" and len(log) == 2
    assert x.grad.tolist() == pytest.approx(first)
    x.exp().sum().backward()
    assert len(log) == 2


def test_the_innermost_hooks_count():
    x = leaf(1.0)
    log = []
    with graph.saved_tensors_hooks(lambda t: (log.append("outer"), t)[1], lambda t: t):
        with graph.saved_tensors_hooks(lambda t: (log.append("inner"), t)[1], lambda t: t):
            x.exp()
        x.exp()
    assert log == ["inner", "outer"]


def test_exceptions_of_saved_tensors_hooks():
    device = pm.private_cpu()
    x = pm.ones(4, device=device, requires_grad=True)

    def refuse(_):
        raise LookupError("no")

    with graph.saved_tensors_hooks(refuse, lambda t: t), pytest.raises(LookupError, match="no"):
        x.exp()
    with graph.saved_tensors_hooks(lambda t: t, refuse):
        y = x.exp()
    with pytest.raises(LookupError, match="no"):
        y.sum().backward()
    with graph.saved_tensors_hooks(lambda t: t, lambda t: 5):
        y = x.exp()
    with pytest.raises(TypeError, match="int"):
        y.sum().backward()
    with graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t), pytest.raises(RuntimeError, match="modifying its input in place"):
        (x * 1).exp()
    del y
    gc.collect()
    assert pm.memory_allocated(device) == 512


def test_custom_functions_save_through_hooks():
    class Square(pm.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            # Each look unpacks, as in PyTorch.
            ctx.saved_tensors
            return grad * 2 * ctx.saved_tensors[0]

    x, log = leaf(3.0), []
    with graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: (log.append(1), t)[1]):
        y = Square.apply(x)
    y.backward()
    assert (x.grad.item(), len(log)) == (6.0, 2)


def test_saving_on_the_host():
    x = leaf(1.0, 2.0)
    for pin in (False, True):
        x.grad = None
        with graph.save_on_cpu(pin_memory=pin):
            y = x * x
        y.sum().backward()
        assert x.grad.tolist() == [2.0, 4.0]
    assert pm.ones(2).pin_memory().is_pinned() and not pm.ones(2).is_pinned()


def test_hooks_can_be_forbidden():
    hooks = graph.saved_tensors_hooks(lambda t: t, lambda t: t)
    with graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"), hooks:
            pass
        leaf(1.0).exp()
    with hooks, pytest.raises(RuntimeError, match="not now"), graph.disable_saved_tensors_hooks("not now"):
        pass
    with hooks:
        leaf(1.0).exp()


def test_pack_hooks_get_leaves_themselves():
    weight = pm.ones(2, requires_grad=True)
    seen = []

    def pack(t):
        seen.append((t is weight, t.requires_grad))
        return t

    with graph.saved_tensors_hooks(pack, lambda t: t):
        y = (weight * 2.0) * weight
    assert seen == [(False, True), (True, True)]
    y.sum().backward()
    assert weight.grad.tolist() == [4.0, 4.0]


def test_pack_hooks_get_other_inputs_with_their_graph():
    weight, seen = pm.ones(2, requires_grad=True), []

    def pack(t):
        seen.append(t)
        return t

    with graph.saved_tensors_hooks(pack, lambda t: t):
        y = weight * 2.0
        z = y * y
        result = z.exp()
    assert [t.requires_grad for t in seen] == [True, True, False]
    assert all(t.grad_fn is y.grad_fn and not t.is_leaf for t in seen[:2])
    # Of a result the values alone: with its graph it would keep itself.
    assert seen[2].tolist() == result.tolist() and seen[2].grad_fn is None
    assert z.grad_fn._saved_self.grad_fn is y.grad_fn
    assert result.grad_fn._saved_result.grad_fn is result.grad_fn
    result.sum().backward()
    assert weight.grad.tolist() == pytest.approx([8 * math.exp(4)] * 2)


def test_a_graph_whose_hooks_keep_everything_is_freed():
    device = pm.private_cpu()
    weight = pm.ones(4, device=device, requires_grad=True)
    before = pm.memory_allocated(device)
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = weight * 2.0
        z = (y * y).exp()
        # What was packed lies behind its own node now.
        y.mul_(z)
    del y, z
    assert pm.memory_allocated(device) == before


def test_what_an_operation_saved():
    x = leaf(1.0, 2.0)
    y = x * 3
    product, power = x * y, y.exp()
    assert product.grad_fn._saved_self is x
    other = product.grad_fn._saved_other
    assert other.tolist() == y.tolist() and other.grad_fn is y.grad_fn
    assert power.grad_fn._saved_result.tolist() == power.tolist()
    constant = pm.ones(2)
    assert (x * constant).grad_fn._saved_self is None
    for name in ("_saved_nothing", "_saved_self", "variable", "foo"):
        with pytest.raises(AttributeError):
            getattr(power.grad_fn, name)
    power.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        power.grad_fn._saved_result


def test_notes_on_a_node():
    y = leaf(1.0) * 2
    assert y.grad_fn.metadata == {}
    y.grad_fn.metadata["a"] = 1
    assert y.grad_fn.metadata == {"a": 1} and (leaf(1.0) * 2).grad_fn.metadata == {}
    with pytest.raises(AttributeError):
        y.grad_fn.metadata = {}
    accumulate = y.grad_fn.next_functions[0][0]
    accumulate.metadata[1] = 2
    assert accumulate.metadata == {1: 2} and accumulate.next_functions == ()


def note_on_a_node(device):
    y = pm.ones(4, device=device, requires_grad=True).exp()
    y.grad_fn.metadata["y"] = y
    return y


def attribute_of_a_gradient(device):
    x = pm.ones(4, device=device, requires_grad=True)
    x.sum().backward()
    x.grad.owner = x
    return x


def attribute_of_a_retained_gradient(device):
    y = pm.ones(4, device=device, requires_grad=True) * 2
    y.retain_grad()
    y.sum().backward()
    y.grad.owner = y
    return y


def attribute_of_a_base(device):
    x = pm.ones(4, device=device)
    view = x[:2]
    x.view_of_mine = view
    return view


def hook_of_a_leaf_that_one_node_holds_twice(device):
    x = pm.ones(4, device=device, requires_grad=True)
    y = (x * x).sum()
    x.register_hook(lambda grad: y)
    return y


PACKED = []


def packed_tensor(device):
    def pack(tensor):
        PACKED.append([tensor])
        return PACKED[-1]

    x = pm.ones(4, device=device, requires_grad=True)
    with graph.saved_tensors_hooks(pack, lambda packed: packed[0]):
        y = x.exp()
    PACKED.pop().append(y)
    return y


def hook_behind_a_saved_input(device):
    x = pm.ones(4, device=device, requires_grad=True)
    y = x * 2
    z = (y * y).exp().sum()
    y.register_hook(lambda grad: z)
    return z


@pytest.mark.parametrize(
    "make",
    [
        note_on_a_node,
        attribute_of_a_gradient,
        attribute_of_a_retained_gradient,
        attribute_of_a_base,
        hook_of_a_leaf_that_one_node_holds_twice,
        packed_tensor,
        hook_behind_a_saved_input,
    ],
)
def test_cycles_through_what_a_tensor_alone_keeps_are_collected(make):
    assert collected(make)


def test_what_a_graph_needs_is_not_collected():
    device = pm.private_cpu()
    x = pm.ones(4, device=device, requires_grad=True)
    x.register_hook(lambda grad: grad * len(marks))
    marks = [1, 2]
    with graph.saved_tensors_hooks(lambda t: [t.clone()], lambda packed: packed[0]):
        y = x.exp()
    z = y.sum()
    del y
    gc.collect()
    z.backward()
    x.grad.mark = marks
    gc.collect()
    assert x.grad.tolist() == pytest.approx([2 * math.e] * 4) and x.grad.mark is marks


def test_a_version_that_was_counted_up_is_noticed():
    for x in (pm.ones(2), pm.tensor(1.0), pm.ones(2, 2).T, pm.ones(0)):
        graph.increment_version(x)
        assert x._version == 1
    x = leaf(1.0, 2.0)
    y = x.exp()
    z = (y * y).sum()
    graph.increment_version([y, x])
    assert (y._version, x._version) == (1, 1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()
