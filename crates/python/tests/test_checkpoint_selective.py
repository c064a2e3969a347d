"""Selective checkpoints: which results are kept, where they lie, and that the gradients do not change."""

import functools

import pytest

import plimsoll as pm
from plimsoll.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    checkpoint_region,
    create_selective_checkpoint_contexts,
)


def function(x, w):
    return ((x @ w).tanh() @ w).sigmoid().sin().sum()


def tensors(device="cpu"):
    pm.manual_seed(0)
    return [pm.rand(32, 32, device=device, requires_grad=True) for _ in range(2)]


def run(policy, allow=False):
    x, w = tensors()
    asked = []

    def decide(ctx, op, *args):
        asked.append(op)
        assert not ctx.is_recompute and isinstance(ctx.op_output, pm.Tensor)
        return policy(op)

    contexts = functools.partial(create_selective_checkpoint_contexts, decide, allow)
    checkpoint(function, x, w, use_reentrant=False, context_fn=contexts).backward()
    return [x.grad.tolist(), w.grad.tolist()], asked


def plain():
    x, w = tensors()
    function(x, w).backward()
    return [x.grad.tolist(), w.grad.tolist()]


@pytest.mark.parametrize("policy", list(CheckpointPolicy))
def test_gradients_do_not_change(policy):
    found, asked = run(lambda op: policy)
    assert found == plain()
    # Once each, and only when the function first runs.
    assert asked == ["matmul", "tanh", "matmul", "sigmoid", "sin", "sum"]
    assert run(lambda op: policy if op == "matmul" else CheckpointPolicy.PREFER_RECOMPUTE)[0] == plain()
    assert run(lambda op: op == "tanh")[0] == plain()


def kept(context_fn):
    device = pm.private_cpu()
    x, w = tensors(device)
    y = checkpoint(function, x, w, use_reentrant=False, context_fn=context_fn)
    found = pm.memory_allocated(device) - 2 * 4096 - 512
    y.backward()
    del y
    assert pm.memory_allocated(device) == 4 * 4096
    return found


def test_bytes():
    contexts = create_selective_checkpoint_contexts
    # A result has 4096 bytes; `sum` one element in 512.
    assert kept(lambda: contexts([])) == 0
    assert kept(lambda: contexts(["matmul"])) == 2 * 4096
    assert kept(lambda: contexts([pm.tanh, pm.sin])) == 2 * 4096
    everything = lambda ctx, op, *args: op != "sum"  # noqa: E731
    assert kept(lambda: contexts(everything)) == 5 * 4096
    offload = lambda ctx, op, *args: CheckpointPolicy.MUST_CPU_OFFLOAD  # noqa: E731
    assert kept(lambda: contexts(offload)) == 0


def test_a_second_backward_is_refused():
    x, w = tensors()
    contexts = functools.partial(create_selective_checkpoint_contexts, ["matmul"])
    y = checkpoint(function, x, w, use_reentrant=False, context_fn=contexts)
    y.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        y.backward()


def test_writes_to_what_is_kept():
    def writes(x, w):
        y = x @ w
        z = y + 1
        y.add_(1)
        return z.tanh().sin().sum()

    x, w = tensors()
    contexts = functools.partial(create_selective_checkpoint_contexts, ["matmul"])
    y = checkpoint(writes, x, w, use_reentrant=False, context_fn=contexts)
    with pytest.raises(RuntimeError, match="has been mutated"):
        y.backward()
    contexts = functools.partial(create_selective_checkpoint_contexts, ["matmul"], allow_cache_entry_mutation=True)
    checkpoint(writes, x, w, use_reentrant=False, context_fn=contexts).backward()


def test_a_region():
    device = pm.private_cpu()
    x = pm.ones(1024, device=device, requires_grad=True)

    def parts(x):
        costly = checkpoint_region(CheckpointPolicy.MUST_SAVE, lambda: x.exp().sin())
        return costly.tanh().sin().sum()

    contexts = functools.partial(create_selective_checkpoint_contexts, [])
    y = checkpoint(parts, x, use_reentrant=False, context_fn=contexts)
    assert pm.memory_allocated(device) == 3 * 4096 + 512  # `x`, two results of the region, `y`
    y.backward()
    found, x.grad = x.grad.tolist(), None
    x.exp().sin().tanh().sin().sum().backward()
    assert x.grad.tolist() == found


def test_what_is_no_policy():
    with pytest.raises(TypeError, match="must be either a function or a list of ops"):
        create_selective_checkpoint_contexts(3)
    with pytest.raises(ValueError, match="Expected op in `op_list`"):
        create_selective_checkpoint_contexts([3])


def test_a_list_names_operations_that_there_are():
    with pytest.raises(ValueError, match="none called 'nope'"):
        create_selective_checkpoint_contexts(["nope"])
    create_selective_checkpoint_contexts(["sin", pm.matmul, "scaled_dot_product_attention"])


@pytest.mark.parametrize("answer", [7, None])
def test_what_is_no_policy_saves_nothing(answer):
    x = pm.ones(2, requires_grad=True)
    contexts = functools.partial(create_selective_checkpoint_contexts, lambda *given: answer)
    checkpoint(lambda x: x.sin().cos(), x, use_reentrant=False, context_fn=contexts).sum().backward()
    y = pm.ones(2, requires_grad=True)
    y.sin().cos().sum().backward()
    assert x.grad.tolist() == y.grad.tolist()
