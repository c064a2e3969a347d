"""Checkpointing from Python, each with what PyTorch 2.15 does: gradients, calls, random numbers, errors and warnings."""

import warnings

import pytest

import plimsoll as pm
from plimsoll.autograd import graph
from plimsoll.utils.checkpoint import (
    CheckpointError,
    GraphExecGroup,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)


def model():
    pm.manual_seed(0)
    layers = pm.nn.Sequential(
        pm.nn.Linear(8, 16), pm.nn.GELU(), pm.nn.Dropout(0.3), pm.nn.Linear(16, 8), pm.nn.Tanh(), pm.nn.Linear(8, 4)
    )
    return layers, pm.rand(5, 8, requires_grad=True)


def gradients(run):
    layers, x = model()
    pm.manual_seed(1)
    run(layers, x).sum().backward()
    state = pm.get_rng_state().tolist()
    return [x.grad.tolist(), *(p.grad.tolist() for p in layers.parameters())], state


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_gradients_are_those_of_the_plain_function(use_reentrant):
    plain = gradients(lambda layers, x: layers(x))
    assert gradients(lambda layers, x: checkpoint(layers, x, use_reentrant=use_reentrant)) == plain
    for segments in (1, 2, 3, 6):
        parts = lambda layers, x: checkpoint_sequential(layers, segments, x, use_reentrant=use_reentrant)  # noqa: E731
        assert gradients(parts) == plain


def test_nested():
    def nested(layers, x):
        inner = lambda x: checkpoint(layers[:3], x, use_reentrant=False)  # noqa: E731
        return checkpoint(lambda x: layers[3:](inner(x)), x, use_reentrant=False)

    assert gradients(nested) == gradients(lambda layers, x: layers(x))


def test_it_runs_again_once_and_stops():
    calls = []

    def function(x, factor, *, shift):
        calls.append("begins")
        y = (x.exp() * factor).sin() + shift
        calls.append("ends")
        return y

    x = pm.ones(3, requires_grad=True)
    y = checkpoint(function, x, 2.0, shift=1.0, use_reentrant=False)
    y.sum().backward()
    assert calls == ["begins", "ends", "begins"]
    calls.clear()
    with set_checkpoint_early_stop(False):
        y = checkpoint(function, x, 2.0, shift=1.0, use_reentrant=False)
    y.sum().backward()
    assert calls == ["begins", "ends", "begins", "ends"]


def test_bytes():
    device = pm.private_cpu()
    x = pm.ones(1024, device=device, requires_grad=True)
    y = checkpoint(lambda x: x.exp().exp().exp().sum(), x, use_reentrant=False)
    assert pm.memory_allocated(device) == 4096 + 512  # `x` and `y`
    y.backward()
    del y
    assert pm.memory_allocated(device) == 2 * 4096  # `x` and its gradient


def test_arguments_that_are_no_tensors():
    x, y = pm.ones(2, requires_grad=True), pm.ones(2)
    result = checkpoint(
        lambda a, b, c, d: {"sum": (a * d["y"]).exp() + b, "c": c}, x, 3, None, {"y": y}, use_reentrant=False
    )
    assert result["c"] is None
    result["sum"].sum().backward()
    assert x.grad.tolist() == pytest.approx([2.718281828] * 2)


def test_as_a_decorator():
    class Block(pm.nn.Module):
        @checkpoint(use_reentrant=False)
        def forward(self, x):
            """Twice."""
            return (x.exp() * 2).sum()

    x = pm.ones(2, requires_grad=True)
    Block()(x).backward()
    assert x.grad.tolist() == pytest.approx([2 * 2.718281828] * 2)
    assert Block.forward.__doc__ == "Twice."
    with pytest.raises(ValueError, match="Unexpected keyword arguments: other"):
        checkpoint(use_reentrant=False, other=1)


def changing(first, second):
    calls = []

    def function(x):
        calls.append(x)
        return first(x) if len(calls) == 1 else second(x)

    return function


def test_a_second_run_that_differs():
    x = pm.ones(2, 3, requires_grad=True)
    twice, once = (lambda x: x.exp().exp().sum()), (lambda x: x.exp().sum())
    with pytest.raises(CheckpointError, match="A different number of tensors was saved") as caught:
        checkpoint(changing(twice, once), x, use_reentrant=False).backward()
    assert "Number of tensors saved during forward: 2\nNumber of tensors saved during recomputation: 1." in str(caught.value)
    with pytest.raises(CheckpointError, match="trying to save more tensors during recomputation"):
        checkpoint(changing(once, twice), x, use_reentrant=False, early_stop=False).backward()
    with pytest.raises(CheckpointError, match="have different metadata than during the forward pass"):
        checkpoint(changing(twice, lambda x: x.exp()[0].exp().sum()), x, use_reentrant=False).backward()
    with pytest.raises(CheckpointError, match="(?s)original forward:.*exp at .*recomputation:.*exp at"):
        checkpoint(changing(twice, once), x, use_reentrant=False, debug=True).backward()
    with set_checkpoint_debug_enabled(True), pytest.raises(CheckpointError, match="Operations executed"):
        checkpoint(changing(twice, once), x, use_reentrant=False).backward()
    assert issubclass(CheckpointError, RuntimeError)


def test_reading_saved_tensors_twice():
    class Twice(pm.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            ctx.saved_tensors
            return grad * 2 * ctx.saved_tensors[0]

    x = pm.ones(2, requires_grad=True)
    y = checkpoint(lambda x: Twice.apply(x.exp()).sum(), x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="already unpacked once"):
        y.backward()


def test_arguments_that_are_refused():
    x = pm.ones(2, requires_grad=True)
    function = lambda x: x.exp()  # noqa: E731
    with pytest.warns(UserWarning, match="the use_reentrant parameter should be passed explicitly"):
        checkpoint(function, x)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: shift"):
        checkpoint(function, x, use_reentrant=True, shift=1)
    with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
        checkpoint(function, x, use_reentrant=True, debug=True)
    with pytest.raises(ValueError, match=r"determinism_check should be one of \['default', 'none'\], but got some"):
        checkpoint(function, x, use_reentrant=False, determinism_check="some")
    with pytest.raises(ValueError, match="debug=True is incompatible with non-default context_fn"):
        checkpoint(function, x, use_reentrant=False, debug=True, context_fn=lambda: None)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        checkpoint(function, pm.ones(2), use_reentrant=True)
    y = checkpoint(function, x, use_reentrant=True)
    with pytest.raises(RuntimeError, match=r"incompatible with .grad\(\) or passing an `inputs` parameter"):
        pm.autograd.grad(y.sum(), x)
    with graph.disable_saved_tensors_hooks("no hooks here"), pytest.raises(RuntimeError, match="no hooks here"):
        checkpoint(function, x, use_reentrant=False)


def test_exceptions_pass():
    def fails(x):
        raise KeyError("mine")

    x = pm.ones(2, requires_grad=True)
    with pytest.raises(KeyError, match="mine"):
        checkpoint(fails, x, use_reentrant=False)
    with pytest.raises(KeyError, match="mine"):
        checkpoint(changing(lambda x: x.exp().sum(), fails), x, use_reentrant=False).backward()


def test_autocast_is_that_of_the_forward():
    dtypes = []

    def function(x, w):
        y = x @ w
        dtypes.append(y.dtype)
        return (y @ w).sin()

    x, w = pm.rand(4, 4, requires_grad=True), pm.rand(4, 4, requires_grad=True)
    with pm.autocast("cpu", dtype=pm.bfloat16):
        y = checkpoint(function, x, w, use_reentrant=False)
    y.float().sum().backward()
    assert dtypes == [pm.bfloat16] * 2


def test_contexts():
    entered = []

    class Context:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            entered.append(self.name)

        def __exit__(self, *failure):
            entered.append(f"{self.name} ends")

    x = pm.ones(2, requires_grad=True)
    contexts = lambda: (Context("forward"), Context("recompute"))  # noqa: E731
    checkpoint(lambda x: x.exp().sum(), x, use_reentrant=False, context_fn=contexts).backward()
    assert entered == ["forward", "forward ends", "recompute", "recompute ends"]


def test_saved_tensors_hooks_around_keep_the_inputs():
    packed = []
    x = pm.ones(2, requires_grad=True)
    with graph.saved_tensors_hooks(lambda t: packed.append(tuple(t.shape)) or t, lambda t: t):
        y = checkpoint(lambda x: x.exp().exp().sum(), x * 2, use_reentrant=False)
    # `mul` by a number saves nothing; the function's input is saved, and what is inside is not.
    assert packed == [(2,)]
    y.backward()
    assert x.grad is not None


def test_a_group():
    calls = []

    def both(x):
        calls.append(1)
        return x.exp().exp(), x.sin().sin()

    x = pm.ones(2, requires_grad=True)
    a, b = checkpoint(both, x, use_reentrant=False)
    with GraphExecGroup():
        a.sum().backward()
        b.sum().backward()
        with pytest.raises(RuntimeError, match="cannot be nested"), GraphExecGroup():
            pass
    assert len(calls) == 2


def test_no_warning_without_need():
    x = pm.ones(2, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checkpoint(lambda x: x.exp().sum(), x, use_reentrant=False).backward()
        with pm.no_grad():
            assert not checkpoint(lambda x: x.exp(), x, use_reentrant=False).requires_grad


class Probe(pm.nn.Module):
    """Notes under which path its bytes are booked."""

    def __init__(self, paths):
        super().__init__()
        self.paths, self.device = paths, pm.private_cpu()

    def forward(self, x):
        kept = pm.zeros(64, device=self.device)
        self.paths.extend(pm.memory_by_module(kept.device))
        return x.exp()


class Blocks(pm.nn.Module):
    def __init__(self, paths, use_reentrant, device):
        super().__init__()
        blocks = [pm.nn.Sequential(Probe(paths), pm.nn.Linear(8, 8)) for _ in range(2)]
        self.blocks = pm.nn.ModuleList(blocks).to(device)
        self.use_reentrant = use_reentrant

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=self.use_reentrant)
        return x


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_modules_keep_their_paths_in_the_second_run(use_reentrant):
    paths, device = [], pm.private_cpu()
    net = Blocks(paths, use_reentrant, device)
    x = pm.ones(2, 8).to(device).requires_grad_()
    with pm.autocast("cpu", dtype=pm.bfloat16):
        loss = net(x).float().sum()
    assert paths == ["blocks.0.0", "blocks.1.0"]
    owned = {path: size for path, size in pm.memory_by_module(device).items() if path.endswith(".1")}
    loss.backward()
    # The last block runs again first, and what modules own stays theirs: its gradients come beside it.
    assert paths[2:] == ["blocks.1.0", "blocks.0.0"]
    for path, size in owned.items():
        assert pm.memory_by_module(device)[path] >= size + 8 * 8 * 4
    assert "1" not in pm.memory_by_module(device)


def test_states_of_devices_that_nobody_uses():
    from plimsoll.utils import checkpoint as module

    assert module.get_device_states({"x": pm.ones(2)}, 3) == ([], [])
    module.set_device_states([], [])
    with pytest.raises(RuntimeError, match="'xpu'"):
        module.set_device_states([], [], device_type="xpu")
