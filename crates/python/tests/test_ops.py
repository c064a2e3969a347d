"""`torch.ops.aten`: operations by the names of PyTorch's dispatcher."""

import functools

import plimsoll as pm
import pytest
from plimsoll.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

X = pm.arange(12.0).reshape(3, 4)


def test_they_compute():
    aten = pm.ops.aten
    assert aten.mm.default(X, X.T).tolist() == (X @ X.T).tolist()
    assert aten.relu(pm.tensor([-1.0, 1.0])).tolist() == [0.0, 1.0]
    assert aten.slice.Tensor(X, 1, 1, 3).tolist() == X[:, 1:3].tolist()
    assert aten.index.Tensor(X, [None, pm.tensor([0, 2])]).tolist() == X[:, [0, 2]].tolist()
    written = aten.index_put_(X.clone(), [None, pm.tensor([0])], pm.tensor(7.0))
    assert written[:, 0].tolist() == [7.0] * 3 and written[:, 1:].tolist() == X[:, 1:].tolist()


def test_their_names():
    add = pm.ops.aten.add
    assert add.Tensor is pm.ops.aten.add.Tensor and add.Tensor != add.default
    assert (add.Tensor.name(), add.default.name(), str(add.Tensor)) == ("aten::add.Tensor", "aten::add", "aten.add.Tensor")
    assert add.Tensor.overloadpacket is add and add.overloads() == ["Tensor", "default"]
    assert pm.ops.aten.sin.default == "sin" and pm.ops.aten.mm.default == "matmul" and pm.ops.aten.sin.default != "cos"


def test_what_is_not_there():
    with pytest.raises(AttributeError, match="ops.aten.*'no_such_operation'"):
        pm.ops.aten.no_such_operation
    with pytest.raises(AttributeError, match="'aten.add' has no overload name 'Nothing'"):
        pm.ops.aten.add.Nothing
    with pytest.raises(NotImplementedError, match="call scaled_dot_product_attention"):
        pm.ops.aten._scaled_dot_product_flash_attention(X, X, X)
    with pytest.raises(IndexError, match="at least one index"):
        pm.ops.aten.index.Tensor(X, [])
    with pytest.raises(IndexError, match="out of range"):
        pm.ops.aten.slice(X, 2, 0, 1)
    with pytest.raises(IndexError, match="0-dim"):
        pm.ops.aten.slice(pm.tensor(1.0))
    with pytest.raises(RuntimeError, match="step must be positive"):
        pm.ops.aten.slice(X, 0, 0, 1, 0)
    with pytest.raises(ValueError, match="update the OpOverloadPacket to a specific OpOverload"):
        create_selective_checkpoint_contexts([pm.ops.aten.sin])


def test_a_checkpoint_keeps_the_results_of_those_it_names():
    x, weight = pm.ones(64, 64), pm.ones(64, 64, requires_grad=True)

    def policy(ctx, op, *args):
        return CheckpointPolicy.MUST_SAVE if op == pm.ops.aten.mm.default else CheckpointPolicy.PREFER_RECOMPUTE

    def run(x):
        return pm.nn.functional.linear(x, weight).sin().cos().sum()

    def kept_bytes(chosen):
        weight.grad = None
        before = pm.memory_allocated("cpu")
        context = functools.partial(create_selective_checkpoint_contexts, chosen)
        made = checkpoint(run, x, use_reentrant=False, context_fn=context)
        kept = pm.memory_allocated("cpu") - before
        made.backward()
        return kept, weight.grad.tolist()

    nothing, expected = kept_bytes([])
    named, by_name = {pm.ops.aten.mm.default, pm.ops.aten.convolution.default}, {"matmul": True}
    for chosen in ([pm.ops.aten.mm.default], policy, ["matmul"], lambda ctx, op, *args: op in named, lambda ctx, op, *args: by_name.get(op, False)):
        kept, gradient = kept_bytes(chosen)
        assert gradient == expected
        assert kept - nothing == 64 * 64 * 4


def test_sets_find_operations_by_all_their_names():
    aten = pm.ops.aten
    for overload in (aten.mm.default, aten.bmm.default, aten.convolution.default, aten._scaled_dot_product_flash_attention.default, aten.sin.default):
        for name in map(pm.ops.Operation, overload.operations):
            assert name == overload and overload == name and name in {overload} and overload in {name}
    assert pm.ops.Operation("bmm") not in {aten.mm.default} and pm.ops.Operation("cos") not in {aten.sin.default}
    assert {"matmul", "conv2d", "sin"} >= set(map(pm.ops.Operation, ("matmul", "conv2d", "sin")))
