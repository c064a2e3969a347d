"""Captured graphs from Python: `cuda.CUDAGraph`, `cuda.graph`, pools, `make_graphed_callables`, optimizers in graphs.

On a stand-in, which captures as a GPU does; `testkit/src/checks/devices/graphs.rs` has what both are held to."""

import gc
import subprocess
import sys

import plimsoll as pm
import pytest
from plimsoll import nn


@pytest.fixture
def gpu():
    return pm.stand_in()


def captured(gpu, function, stream=None, **how):
    """The graph of a function, and what it made."""
    graph = pm.cuda.CUDAGraph()
    with pm.cuda.graph(graph, stream=stream or pm.cuda.Stream(gpu), **how):
        made = function()
    return graph, made


def test_replays_read_what_their_inputs_hold(gpu):
    x = pm.ones(4, device=gpu)
    graph, y = captured(gpu, lambda: (x * 2 + 1).sum())
    for value in (1.0, 5.0):
        x.fill_(value)
        graph.replay()
        assert y.item() == 4 * (2 * value + 1)


def test_what_waits_is_refused_and_names_itself(gpu):
    x = pm.ones(4, device=gpu)
    before = pm.memory_allocated(gpu)
    for wait in (lambda: x.sum().item(), lambda: x.cpu(), lambda: x[x > 0], lambda: pm.tensor(1.0, device=gpu)):
        refused = "the capture failed: operation not permitted when stream is capturing"
        with pytest.raises(RuntimeError, match=refused) as told:
            captured(gpu, wait)
        # What the block raised itself is told too.
        assert isinstance(told.value.__context__, RuntimeError)
    del told
    gc.collect()
    assert pm.memory_allocated(gpu) == before
    graph, y = captured(gpu, lambda: x + 1)
    graph.replay()
    assert y.tolist() == [2.0] * 4


def test_an_exception_in_the_block_is_what_is_raised(gpu):
    graph = pm.cuda.CUDAGraph()
    with pytest.raises(ZeroDivisionError), pm.cuda.graph(graph, stream=pm.cuda.Stream(gpu)):
        1 / 0  # noqa: B018
    assert not pm.cuda.Stream(gpu)._is_capturing


def test_states_that_are_wrong(gpu):
    graph = pm.cuda.CUDAGraph()
    for call in (graph.replay, graph.capture_end, graph.pool, graph.instantiate):
        with pytest.raises(RuntimeError):
            call()
    with pytest.raises(RuntimeError, match="mode of errors"):
        captured(gpu, lambda: None, capture_error_mode="sometimes")
    x = pm.ones(4, device=gpu)
    graph, _ = captured(gpu, lambda: x + 1)
    with pytest.raises(RuntimeError, match="captured already"), pm.cuda.graph(graph, stream=pm.cuda.Stream(gpu)):
        pass
    graph.reset()
    with pytest.raises(RuntimeError, match="has not been captured"):
        graph.replay()
    with pm.cuda.graph(graph, stream=pm.cuda.Stream(gpu)):
        x.add_(1)
    graph.replay()
    assert x.tolist() == [2.0] * 4
    with pytest.raises(NotImplementedError, match="files"):
        graph.debug_dump("graph.dot")


def test_graphs_share_a_pool_and_take_it_with_them(gpu):
    gc.collect()
    x, stream = pm.ones(1 << 20, device=gpu), pm.cuda.Stream(gpu)
    pm.synchronize(gpu)
    pm.empty_cache(gpu)
    before = pm.memory_reserved(gpu)
    handle = pm.cuda.graph_pool_handle()
    assert handle != pm.cuda.graph_pool_handle()
    first, y = captured(gpu, lambda: (x + 1) * 2, stream, pool=handle)
    own = pm.memory_reserved(gpu) - before
    assert own == (20 << 20) + (2 << 20)  # the pool's segment, and one for what draws start from
    # On the stream of the first, since blocks are reused on their own stream.
    second, z = captured(gpu, lambda y=y: (y + 1) * 2, stream, pool=first.pool())
    assert (second.pool(), second.pools()) == (handle, [handle])
    assert pm.memory_reserved(gpu) - before == own
    third, _ = captured(gpu, lambda: x + 1)
    assert third.pool() != handle
    first.replay()
    second.replay()
    assert z[0].item() == 10.0
    del first, y, z, third, _
    second.reset()
    gc.collect()
    pm.synchronize(gpu)
    pm.empty_cache(gpu)
    assert pm.memory_reserved(gpu) == before


def test_a_pool_of_the_program_may_be_given(gpu):
    pool, x = pm.MemPool(gpu), pm.ones(1 << 10, device=gpu)
    graph, y = captured(gpu, lambda: x + 1, pool=pool)
    assert graph.pool() == pool.id
    assert pool.active_bytes == y.nbytes


def test_a_pool_of_the_program_gives_nobody_what_replays_write(gpu):
    pool, stream, x = pm.MemPool(gpu), pm.cuda.Stream(gpu), pm.ones(1 << 10, device=gpu)
    graph, y = captured(gpu, lambda: (x + 1) * 2 + 3, stream, pool=pool)
    with pm.cuda.stream(stream), pm.use_mem_pool(pool):
        beside = pm.zeros(1 << 10, device=gpu)
    graph.replay()
    assert (beside.abs().max().item(), y[0].item()) == (0.0, 7.0)


def test_pinned_memory_of_a_graph_is_not_moved(gpu):
    pinned, x = pm.zeros(1 << 10).pin_memory(), pm.full((1 << 10,), 6.0, device=gpu)
    graph, _ = captured(gpu, lambda: pinned.copy_(x, non_blocking=True))
    with pytest.raises((RuntimeError, ValueError), match="a captured graph copies from or to this memory"):
        pinned.share_memory_()
    graph.replay()
    assert pinned.tolist() == [6.0] * (1 << 10)
    graph.reset()
    assert pinned.share_memory_().is_shared()
    assert pinned.tolist() == [6.0] * (1 << 10)


def test_a_capture_that_sets_another_seed_fails_as_in_pytorch(gpu):
    pm.manual_seed(3)
    with pytest.raises(RuntimeError, match="seeded anew"):
        captured(gpu, lambda: (pm.manual_seed(4), pm.rand(3, device=gpu)))


def test_draws_are_new_at_each_replay_and_those_of_the_program(gpu):
    pm.manual_seed(5)
    expected = [pm.rand(3, device=gpu).tolist() for _ in range(3)]
    pm.manual_seed(5)
    graph, y = captured(gpu, lambda: pm.rand(3, device=gpu))
    for values in expected:
        graph.replay()
        assert y.tolist() == values
    other = pm.Generator(gpu)
    with pytest.raises(RuntimeError, match="generator that the graph does not know"):
        captured(gpu, lambda: pm.rand(3, device=gpu, generator=other))
    graph = pm.cuda.CUDAGraph()
    graph.register_generator_state(other)
    with pm.cuda.graph(graph, stream=pm.cuda.Stream(gpu)):
        y = pm.rand(3, device=gpu, generator=other)
    graph.replay()
    first = y.tolist()
    graph.replay()
    assert y.tolist() != first


def network(gpu, dropout=0.0):
    pm.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Dropout(dropout), nn.Linear(16, 1)).to(gpu)


KINDS = {
    "adam": lambda p, lr: pm.optim.Adam(p, lr=lr, capturable=True),
    "adamw": lambda p, lr: pm.optim.AdamW(p, lr=lr, capturable=True, amsgrad=True),
    "nadam": lambda p, lr: pm.optim.NAdam(p, lr=lr, capturable=True),
    "radam": lambda p, lr: pm.optim.RAdam(p, lr=lr, capturable=True),
    "adamax": lambda p, lr: pm.optim.Adamax(p, lr=lr, capturable=True),
    "adadelta": lambda p, lr: pm.optim.Adadelta(p, lr=lr, capturable=True),
    "rmsprop": lambda p, lr: pm.optim.RMSprop(p, lr=lr, capturable=True, momentum=0.5),
    "sgd": lambda p, lr: pm.optim.SGD(p, lr=lr),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_captured_training_step_is_the_step(gpu, kind):
    x, target = pm.randn(4, 8).to(gpu), pm.randn(4, 1).to(gpu)

    def trained(capture):
        model, lr = network(gpu, dropout=0.2), pm.full((), 0.1, device=gpu)
        optimizer = KINDS[kind](model.parameters(), lr)

        def step():
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.mse_loss(model(x), target)
            loss.backward()
            optimizer.step()
            return loss.detach()

        # The first steps make what the optimizer keeps.
        losses = [step().item() for _ in range(2)]
        run = step
        if capture:
            graph, loss = captured(gpu, step)

            def run():
                graph.replay()
                return loss

        for at in range(6):
            lr.fill_(0.1 / (1 + at))
            losses.append(run().item())
        return losses, [p.detach().cpu() for p in model.parameters()]

    (expected, weights), (losses, captured_weights) = trained(False), trained(True)
    assert losses == expected
    assert all(pm.equal(a, b) for a, b in zip(weights, captured_weights, strict=True))


def test_a_step_that_is_not_capturable_is_refused_as_in_pytorch(gpu):
    model = network(gpu)
    optimizer = pm.optim.AdamW(model.parameters())
    model(pm.ones(4, 8, device=gpu)).sum().backward()
    optimizer.step()
    said = "Attempting CUDA graph capture of step\\(\\) for an instance of AdamW but param_groups' capturable is False."
    with pytest.raises(RuntimeError, match=said):
        captured(gpu, optimizer.step)
    optimizer.step()


def test_graphed_modules_and_functions_train_as_they_do(gpu):
    x, target = pm.randn(4, 8).to(gpu), pm.randn(4, 1).to(gpu)

    def squared(y):
        return (y - target).square().mean()

    def trained(graphed):
        model, loss_of = network(gpu), squared
        optimizer = pm.optim.SGD(model.parameters(), lr=0.1)
        if graphed:
            samples = (pm.randn(4, 8).to(gpu),), (pm.randn(4, 1).to(gpu).requires_grad_(),)
            model, loss_of = pm.cuda.make_graphed_callables((model, squared), samples)
        losses = []
        for at in range(5):
            optimizer.zero_grad()
            loss = loss_of(model(x * (1 + at)))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, model

    (expected, _), (losses, model) = trained(False), trained(True)
    assert losses == expected
    model.eval()  # another mode: as usual
    assert pm.equal(model(x), model[3](model[1](model[0](x))))
    with pytest.raises(AssertionError, match="tensors, and nothing else"):
        pm.cuda.make_graphed_callables(squared, (3,))


def test_gradients_of_a_graphed_function(gpu):
    def both(x, y):
        return {"product": x * y, "sum": (x + y).detach()}

    def sample(grad):
        return pm.ones(3, device=gpu, requires_grad=grad)

    graphed = pm.cuda.make_graphed_callables(both, (sample(True), sample(False)))
    x = pm.tensor([1.0, 2.0, 3.0], requires_grad=True)
    made = graphed(x.to(gpu), pm.full((3,), 4.0, device=gpu))
    assert made["sum"].tolist() == [5.0, 6.0, 7.0]
    made["product"].sum().backward()
    assert x.grad.tolist() == [4.0] * 3


SCRIPT = """
import torch
assert torch.cuda.is_available() and not torch.cuda.is_current_stream_capturing()
g = torch.cuda.CUDAGraph()
static = torch.zeros(5, device="cuda")
s = torch.cuda.Stream()
s.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(s):
    for _ in range(3):
        out = static * 2
torch.cuda.current_stream().wait_stream(s)
with torch.cuda.graph(g):
    assert torch.cuda.is_current_stream_capturing()
    assert torch.cuda.current_device() == 0
    out = static * 2
static.copy_(torch.full((5,), 3.0, device="cuda"))
g.replay()
print(out.tolist())
try:
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        torch.cuda.synchronize()
except RuntimeError as error:
    print("capturing" in str(error))
g2 = torch.cuda.CUDAGraph()
with torch.cuda.stream(torch.cuda.Stream()):
    g2.capture_begin(pool=g.pool())
    static.add_(1)
    g2.capture_end()
g2.replay()
print(static.tolist())
try:
    torch.cuda.CUDAGraph().capture_begin()
except RuntimeError as error:
    print("non-default stream" in str(error))
"""


def test_a_program_of_pytorchs_captures_as_it_stands(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "plimsoll", "run", "--device-memory", "1GiB", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[6.0, 6.0, 6.0, 6.0, 6.0]", "True", "[4.0, 4.0, 4.0, 4.0, 4.0]", "True"]
