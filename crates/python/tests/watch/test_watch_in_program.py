"""A watch inside a program: the block, the decorator, the assertion; and that a watched program computes the same
bits, holds the same storages and finds PyTorch as it was afterwards."""

import gc
import json
import signal
import sys
import weakref

import pytest

torch = pytest.importorskip("torch")

from torch.optim.optimizer import _global_optimizer_post_hooks  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import runner  # noqa: E402

watch = runner.load()
from plimsoll_watch import _errors, _looks, _making, _session  # noqa: E402
from plimsoll_watch._making import parts_of_sparse  # noqa: E402


def train(steps, kept=None):
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Dropout(0.2), torch.nn.GELU(), torch.nn.Linear(64, 8))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(steps):
        out = model(torch.randn(16, 32))
        optimizer.zero_grad()
        out.pow(2).mean().backward()
        optimizer.step()
        if kept is not None:
            kept.append(out.detach().repeat(1, 64))
    return [parameter.detach().clone() for parameter in model.parameters()] + [torch.randn(4)]


def live_storages():
    gc.collect()
    tensors = [one for one in gc.get_objects() if issubclass(type(one), torch.Tensor)]
    return {one.untyped_storage()._cdata for one in tensors}


def test_a_block_finds_and_is_read():
    kept = []
    with watch() as watched:
        train(30, kept)
        assert watched.findings and "growing so far" in watched.text()
    (finding,) = watched.verdicts
    assert finding.kind == "value" and finding.line.startswith("test_watch_in_program.py:")
    assert finding.bytes_per_step == pytest.approx(16 * 8 * 64 * 4) and finding.objects_per_step == pytest.approx(1)
    assert json.loads(watched.json())["findings"][0]["verdict"] is True


def test_an_error_while_noting_is_told(monkeypatch):
    """Also where the next window can be opened again."""

    def broken(*_):
        raise TypeError("changed")

    monkeypatch.setattr(_making, "Row", broken)
    with watch() as watched:
        train(30)
    assert "noting stopped: TypeError: changed" in watched.text()


def keep_random_states(states, steps):
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        states[step % 1000] = torch.get_rng_state()
        optimizer.zero_grad()
        model(torch.randn(4, 8)).pow(2).mean().backward()
        optimizer.step()


def test_a_dictionary_of_what_is_made_past_the_dispatcher():
    """It has few keys at the first looks, and no line is noted."""
    with watch() as watched:
        keep_random_states({}, 60)
    (finding,) = watched.verdicts
    assert finding.held_by.startswith("local `states` of keep_random_states() -> dict of ") and finding.lines == []
    assert finding.bytes_per_step == torch.get_rng_state().nbytes


def test_a_few_keys_that_are_set_anew_gain_nothing():
    states = dict.fromkeys(("first", "second"))
    with watch() as watched:
        for _ in range(12):
            keep_random_states(states, 5)
            del states[4]
    assert watched.findings == []


class Hearing(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise AssertionError(func)


class HearingFunctions(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise AssertionError(func)


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("to", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_what_sparse_tensors_consist_of_is_asked_for_unheard(to):
    dense, sparse = torch.eye(3), getattr(torch.eye(3), to)()
    with Hearing(), HearingFunctions():
        parts, none = parts_of_sparse(sparse), parts_of_sparse(dense)
    assert none == [] and sum(part.nbytes for part in parts) >= 3 * 4 + 6 * 8


def test_the_same_bits_and_random_numbers():
    alone = train(30)
    with watch() as watched:
        under_watch = train(30)
    assert watched.findings == []
    assert all(torch.equal(one, other) for one, other in zip(alone, under_watch, strict=True))


def test_nothing_is_kept_alive():
    train(12)
    before = live_storages()
    with watch():
        kept = []
        train(30, kept)
        last = weakref.ref(kept[-1])
        del kept
        assert last() is None
    assert live_storages() <= before


def test_pytorch_is_as_it_was_afterwards():
    call, following = torch.nn.Module.__call__, torch.utils.data.dataloader._BaseDataLoaderIter.__next__
    hooks, backward = len(_global_optimizer_post_hooks), torch.autograd.backward
    with watch():
        train(12)
    assert torch.nn.Module.__call__ is call
    assert torch.utils.data.dataloader._BaseDataLoaderIter.__next__ is following
    assert len(_global_optimizer_post_hooks) == hooks
    assert torch.autograd.backward is backward
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None


@pytest.mark.filterwarnings("ignore:Using backward")
def test_backward_tells_steps_and_a_cycle_inside_graphs_is_told_as_one():
    with watch() as watched:
        for _ in range(30):
            x = torch.randn(1024, requires_grad=True)
            x.tanh().backward(torch.ones_like(x), create_graph=True)
            del x
    assert (watched._session.steps.told, watched._session.steps.counted_by) == (30, "calls of backward")
    assert watched.verdicts and all("create_graph" in finding.remedy for finding in watched.verdicts)
    # All that was imported is walked through once, however often something is looked at.
    assert watched._session.looks._libraries.walks == 1


@pytest.mark.parametrize("has_loader", [False, True])
@pytest.mark.parametrize("kept_is", ["graph", "value", "prediction"])
def test_what_is_gathered_beside_learning_by_hand_is_no_predictions(has_loader, kept_is):
    """Without an optimizer: backward tells that it is learnt, and nobody gathers graphs on purpose."""
    w = torch.randn(64, 64, requires_grad=kept_is != "prediction")
    batches = [(torch.randn(16, 64),) for _ in range(60)]
    if has_loader:
        batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(960, 64)), 16)
    kept, model = [], torch.nn.Identity()
    with watch() as watched:
        for (x,) in batches:
            y = model(x @ w).tanh()
            if kept_is == "value":
                y.pow(2).mean().backward()
                with torch.no_grad():
                    w -= 0.01 * w.grad
                    w.grad = None
            kept.append(y.detach() if kept_is == "value" else y)
    (finding,) = watched.findings
    assert finding.held_by.startswith("local `kept` of ") and finding.bytes_per_step >= 4096
    assert (finding.is_verdict, finding.is_note) == ((False, True) if kept_is == "prediction" else (True, False))


def test_as_a_decorator_and_as_an_error():
    kept = []

    @watch(error_on_leak=True)
    def leaks():
        for _ in range(30):
            kept.append(torch.ones(64, 64))
            watch.step()

    with pytest.raises(watch.LeakError, match=r"16.0 KiB a step") as error:
        leaks()
    assert "list of" in str(error.value) and "counted by watch.step()" in str(error.value)


def test_a_generator_and_a_coroutine_are_watched_to_their_ends():
    import asyncio

    kept = []

    def leak():
        kept.append(torch.ones(64, 64))
        watch.step()

    @watch(error_on_leak=True)
    def generated():
        for at in range(30):
            leak()
            yield at

    @watch(error_on_leak=True)
    async def awaited():
        for _ in range(30):
            leak()
            await asyncio.sleep(0)

    with pytest.raises(watch.LeakError, match=r"16.0 KiB a step"):
        assert sum(generated()) == 435
    with pytest.raises(watch.LeakError, match=r"16.0 KiB a step"):
        asyncio.run(awaited())

    async def endless():
        yield 1

    with pytest.raises(TypeError, match="asynchronous generator; use `with` inside it"):
        watch()(endless)


def test_the_assertion():
    kept = []
    watch.assert_no_leak(lambda: torch.ones(64, 64).sum())
    with pytest.raises(watch.LeakError):
        watch.assert_no_leak(lambda: kept.append(torch.ones(64, 64)))


def test_one_at_a_time_and_marks_without_a_watch():
    watch.step()
    watch.epoch()
    with watch():
        with pytest.raises(RuntimeError, match="another watch is on"):
            watch().__enter__()


def test_an_error_inside_goes_on():
    with pytest.raises(ZeroDivisionError):
        with watch(error_on_leak=True):
            1 / 0


def test_a_pass_that_is_cleared_is_no_leak():
    with watch() as watched:
        for _ in range(4):
            kept = []
            for _ in range(20):
                kept.append(torch.ones(64, 64))
                watch.step()
            watch.epoch()
    assert watched.verdicts == []


def test_no_function_of_python_runs_where_a_storage_is_let_go_of():
    """What a handler of a signal raises in one, as Ctrl-C's does, would be lost."""
    ran = set()

    def note(frame, event, _):
        if event == "call":
            ran.add(frame.f_code.co_name)

    kept, excluded = [], torch.ones(4)
    with watch(exclude=[excluded]):
        sys.setprofile(note)
        try:
            for _ in range(30):
                kept.append(torch.ones(64, 64))
                del kept[:-4]
                watch.step()
        finally:
            sys.setprofile(None)
    assert "place_of" in ran and "__del__" not in ran


class _Rings:
    def __call__(self, number, frame):
        raise TimeoutError

    def once(self, number, frame):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        raise TimeoutError


def _raises():
    raise TimeoutError


@pytest.mark.parametrize("handler", [_Rings(), _Rings().once, lambda *_: _raises(), lambda number, frame: _raises(), None])
def test_only_errors_of_handlers_are_the_programs_own(handler):
    """Other code of the program's, as a tensor's that is asked for its sizes, is not to run in the watch."""
    before = signal.signal(signal.SIGALRM, handler or signal.SIG_DFL)
    try:
        _raises() if handler is None else signal.raise_signal(signal.SIGALRM)
    except TimeoutError as error:
        assert _errors.is_programs_own(error) is (handler is not None)
    else:
        raise AssertionError("nothing was raised")
    finally:
        signal.signal(signal.SIGALRM, before)


def test_compiled_functions_stay_compiled():
    calls = []

    def backend(graph, inputs):
        def run(*args):
            calls.append(len(args))
            return graph(*args)

        return run

    torch._dynamo.reset()
    function = torch.compile(lambda x: (x.sin() + 1).cos(), backend=backend)
    x = torch.randn(32)
    wanted = function(x)
    before = len(calls)
    with watch() as watched:
        for _ in range(20):
            assert torch.equal(function(x), wanted)
            watch.step()
    assert len(calls) == before + 20
    assert watched.findings == []


def noting_backend():
    """A backend of the compiler, and how many nodes each graph has that comes to it."""
    graphs = []

    def backend(graph, inputs):
        graphs.append(len(graph.graph.nodes))
        return graph

    return backend, graphs


def test_a_compiled_model_is_the_same_graph():
    backend, graphs = noting_backend()

    def compiled():
        torch._dynamo.reset()
        graphs.clear()
        model = torch.compile(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()), backend=backend)
        with torch.no_grad():
            for _ in range(20):
                model(torch.ones(4, 8))
        return list(graphs)

    alone = compiled()
    with watch():
        under_watch = compiled()
    assert under_watch == alone and len(alone) == 1


@pytest.mark.parametrize("has_phases", [False, True])
def test_a_compiled_step_is_the_same_graphs(has_phases, monkeypatch):
    """With backward and the optimizer in it: the compiler comes to the watch's hooks, and leaves them alone."""
    backend, graphs = noting_backend()

    def compiled():
        torch._dynamo.reset()
        graphs.clear()
        torch.manual_seed(0)
        model = torch.nn.Linear(16, 16)
        optimizer, kept = torch.optim.Adam(model.parameters()), []

        @torch.compile(backend=backend)
        def learn(x):
            optimizer.zero_grad()
            out = model(x)
            out.square().mean().backward()
            optimizer.step()
            return out

        for _ in range(60):
            kept.append(learn(torch.randn(32, 16)).detach())
        return list(graphs), model.weight.detach().clone()

    alone, learnt = compiled()
    # However long a look takes.
    monkeypatch.setattr(_session, "SLOW_SECONDS", 0.0)
    monkeypatch.setattr(_looks, "SLOW_SECONDS", 0.0)
    for share in ("CENSUS_SHARE", "IDLE_CENSUS_SHARE"):
        monkeypatch.setattr(_looks, share, 1e9)
    if has_phases:
        start = _session.Session.start
        monkeypatch.setattr(_session.Session, "start", lambda self: (self.follow_phases(), start(self))[1])
    with watch() as watched:
        under_watch, same = compiled()
    assert under_watch == alone and len(alone) > 1 and torch.equal(learnt, same)
    assert watched._session.steps.told == 60 and "stopped" not in watched.text()
    (finding,) = watched.verdicts
    assert "local `kept`" in finding.held_by and "within a compiled function" in " ".join(watched.text().split())


def test_a_step_within_a_step_is_one():
    """A class of the program's own that asks the one below it: PyTorch calls its hooks for both."""

    class Clipped(torch.optim.Adam):
        def step(self, closure=None):
            for parameter in self.param_groups[0]["params"]:
                parameter.grad.clamp_(-1, 1)
            return super().step(closure)

    one, other = torch.nn.Linear(16, 16), torch.nn.Linear(16, 64)
    # PyTorch hooks a class when the first of it is made.
    optimizers, kept = [torch.optim.Adam(other.parameters()), Clipped(one.parameters())], []
    with watch() as watched:
        for _ in range(40):
            out = other(one(torch.ones(32, 16)))
            out.square().mean().backward()
            for optimizer in reversed(optimizers):
                optimizer.step()
            kept.append(out.detach())
    (finding,) = watched.verdicts
    assert watched._session.steps.told == 40 and finding.bytes_per_step == 32 * 64 * 4


def test_what_a_slot_holds_is_told_once():
    class Meter:
        __slots__ = ("total",)

    meter, model = Meter(), torch.nn.Sequential(*[torch.nn.Linear(16, 16) for _ in range(20)])
    meter.total = torch.zeros(())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with watch() as watched:
        for _ in range(40):
            optimizer.zero_grad()
            loss = model(torch.ones(8, 16)).square().mean()
            loss.backward()
            optimizer.step()
            meter.total = meter.total + loss
    (finding,) = watched.verdicts
    assert "local `meter`.total" in finding.held_by and finding.also_held_by == []


@pytest.mark.parametrize("is_marked", [False, True])
def test_an_evaluation_after_training_is_told_where_it_marks_its_steps(is_marked):
    model, kept = torch.nn.Linear(32, 32), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch() as watched:
        for _ in range(30):
            model(torch.randn(16, 32)).square().mean().backward()
            optimizer.step()
        for _ in range(40):
            kept.append(model(torch.randn(16, 32)))
            if is_marked:
                watch.step()
    assert watched._session.steps.counted_by == ("watch.step()" if is_marked else "optimizer steps")
    assert [finding.held_by.split(" of ")[0] for finding in watched.findings] == (["local `kept`"] if is_marked else [])


def test_no_collection_comes_into_a_look(monkeypatch):
    """It takes longer than the look where a program has many objects, and the look would be taken for a slow one."""
    came, within, before = [], [], gc.get_threshold()
    kept, look = [[at] for at in range(1000)], _looks.Census

    def looked(*arguments, **named):
        came.clear()
        census = look(*arguments, **named)
        within.append(list(came))
        return census

    def note(phase, _):
        came.append(phase)

    monkeypatch.setattr(_looks, "Census", looked)
    with watch() as watched:
        gc.callbacks.append(note)
        try:
            gc.set_threshold(10)
            watched._session.looks.census()
            assert (within, gc.get_threshold()[0]) == ([[]], 10)
        finally:
            gc.set_threshold(*before)
            gc.callbacks.remove(note)
    assert len(kept) == 1000
