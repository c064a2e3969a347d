"""`plimsoll.LeakWatch`: what grows is told with bytes, line, kind and the path of Python's names that holds it; what the path names
is what to drop."""

import contextvars
import copy
import inspect
import queue
import subprocess
import sys
import threading

import plimsoll
import pytest
from plimsoll.watch import LeakError

STEPS = 24


def line_of(function, text):
    """`file.py:line` of the line of a function that has a text."""
    lines, first = inspect.getsourcelines(function)
    at = next(at for at, line in enumerate(lines) if text in line)
    return f"test_leak_watch.py:{first + at}"


def test_a_list_of_values_is_named_and_dropping_it_frees_the_bytes():
    device = plimsoll.private_cpu()
    history = []
    with plimsoll.LeakWatch(device) as watch:
        for _ in range(STEPS):
            history.append(plimsoll.zeros(1000, device=device))  # made
            watch.step()
    (leak,) = watch.verdicts
    assert leak.bytes_per_step == 4096 and leak.objects_per_step == 1
    assert leak.line == line_of(test_a_list_of_values_is_named_and_dropping_it_frees_the_bytes, "# made")
    assert leak.kind == "value" and leak.cause == "values are kept"
    name = "test_a_list_of_values_is_named_and_dropping_it_frees_the_bytes"
    assert leak.held_by.startswith(f"local `history` of {name}() -> list of ")
    assert "grows 4.0 KiB a step (1 storage)" in watch.text()
    assert plimsoll.memory_allocated(device) == STEPS * 4096
    history.clear()
    assert plimsoll.memory_allocated(device) == 0


def test_a_loss_that_is_kept_keeps_its_graph():
    weight = plimsoll.ones(1024, requires_grad=True)
    losses = []
    with plimsoll.LeakWatch() as watch:
        for _ in range(STEPS):
            hidden = weight.exp()  # made
            losses.append(hidden.sum())
            del hidden
            watch.step()
    (leak,) = watch.verdicts
    assert leak.kind == "activation kept by a graph" and leak.bytes_per_step == 4096 + 512
    assert leak.line == line_of(test_a_loss_that_is_kept_keeps_its_graph, "# made")
    assert "`losses`" in leak.held_by and leak.held_by.endswith("-> grad_fn SumBackward0")
    assert leak.cause == "a graph is kept alive by a loss that is kept"


def test_nodes_of_losses_kept_after_backward():
    weight = plimsoll.ones(64, requires_grad=True)
    losses = []
    with plimsoll.LeakWatch() as watch:
        for _ in range(2 * STEPS):
            loss = weight.exp().sin().cos().neg().abs().sum()
            loss.backward()
            losses.append(loss)
            watch.step()
    (leak,) = watch.verdicts
    assert leak.kind == "graph nodes on the host" and "`losses`" in leak.held_by


class Owner:
    kept: list = []

    def __init__(self):
        self.seen = []


def test_owners_are_told_by_class_attribute_and_closure():
    def gatherer():
        gathered = []

        def gather(value):
            gathered.append(value)

        return gather

    gather, owner = gatherer(), Owner()
    with plimsoll.LeakWatch() as watch:
        for _ in range(STEPS):
            Owner.kept.append(plimsoll.zeros(1024))
            owner.seen.append(plimsoll.ones(2048))
            gather(plimsoll.full((4096,), 2.0))
            watch.step()
    held = {leak.bytes_per_step: leak.held_by for leak in watch.verdicts}
    Owner.kept.clear()
    assert set(held) == {4096, 8192, 16384}
    assert "class attribute Owner.kept -> list of " in held[4096]
    assert "local `owner`.seen of test_owners" in held[8192] and "() -> list of " in held[8192]
    assert "closure variable `gathered` of gather()" in held[16384]


def test_context_variables_and_iterators_without_a_name_hold():
    device = plimsoll.private_cpu()
    seen = contextvars.ContextVar("seen")
    seen.set([])
    with plimsoll.LeakWatch(device) as watch:
        for _ in range(STEPS):
            seen.get().append(plimsoll.zeros(1000, device=device))
            watch.step()
    (leak,) = watch.verdicts
    assert leak.bytes_per_step == 4096 and "seen" in leak.held_by, watch.text()

    def batches():
        kept = []
        for _ in range(STEPS):
            kept.append(plimsoll.zeros(1000, device=device))
            yield kept[-1]

    with plimsoll.LeakWatch(device) as watch:
        for _ in batches():
            watch.step()
    (leak,) = watch.verdicts
    assert leak.bytes_per_step == 4096 and "`kept`" in leak.held_by, watch.text()


def test_what_is_said_to_a_watch_that_is_off_changes_nothing():
    device = plimsoll.private_cpu()
    watch = plimsoll.LeakWatch(device, exclude="kept")
    watch.pause()
    watch.resume()
    kept, others = [], []
    with watch:
        for _ in range(STEPS):
            kept.append(plimsoll.zeros(1000, device=device))
            others.append(plimsoll.zeros(2000, device=device))
            watch.step()
    (leak,) = watch.verdicts
    assert "local `others`" in leak.held_by, watch.text()


def test_optimizer_steps_tell_steps_and_training_is_clean():
    model = plimsoll.nn.Sequential(plimsoll.nn.Linear(32, 64), plimsoll.nn.ReLU(), plimsoll.nn.Linear(64, 4))
    optimizer = plimsoll.optim.Adam(model.parameters())
    with plimsoll.LeakWatch(error_on_leak=True) as watch:
        for _ in range(STEPS):
            optimizer.zero_grad()
            model(plimsoll.randn(8, 32)).square().mean().backward()
            optimizer.step()
    assert watch.findings == [] and watch.steps >= STEPS - 1
    assert watch.text().startswith(f"watch: {watch.steps} steps, counted by optimizer steps; 0 findings")


def test_growth_is_told_while_it_goes_on():
    kept, told = [], []
    with plimsoll.LeakWatch() as watch:
        for step in range(1, STEPS):
            kept.append(plimsoll.zeros(512))
            watch.step()
            told += [step] if watch.findings else []
            assert "growing so far" in watch.text()
    assert told[0] == 10
    assert len(watch.verdicts) == 1


def test_a_leak_raises_unless_it_is_wanted():
    def leak(**options):
        replay = []
        with plimsoll.LeakWatch(error_on_leak=True, **options) as watch:
            for _ in range(STEPS):
                replay.append(plimsoll.zeros(1024))
                watch.step()

    with pytest.raises(LeakError, match="local `replay` of leak"):
        leak()
    leak(exclude=["replay"])
    with pytest.raises(TypeError, match="exclude takes tensors"):
        plimsoll.LeakWatch(exclude=[3])


def test_lists_that_are_cleared_and_bounded_are_no_leak():
    import collections

    epoch, buffer = [], collections.deque(maxlen=200)
    with plimsoll.LeakWatch(error_on_leak=True) as watch:
        for step in range(60):
            if step % 12 == 0:
                epoch.clear()
            epoch.append(plimsoll.zeros(1024))
            buffer.append(plimsoll.ones(1024))
            watch.step()
    assert [finding.is_note for finding in watch.findings] == [True]


def test_running_out_of_memory_names_holders_under_a_watch():
    device = plimsoll.private_cpu()
    plimsoll.set_memory_limit(4 << 20, device)
    kept = []
    with plimsoll.LeakWatch(device), pytest.raises(plimsoll.OutOfMemoryError) as ran_out:
        while True:
            kept.append(plimsoll.zeros(1 << 16, device=device))
    assert f"held by     {len(kept) / 4:.2f} MiB in {len(kept)} blocks, value: {len(kept)} tensors made by zeros" in str(ran_out.value)


def test_the_watch_of_pytorch_says_which_one_to_use():
    program = "import sys; sys.modules['torch'] = None\nimport plimsoll\nwith plimsoll.watch(): pass"
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert done.returncode == 1 and "use plimsoll.LeakWatch() for Plimsoll's" in done.stderr


def test_going_on_without_a_pause_counts_no_step_twice():
    model = plimsoll.nn.Linear(8, 8)
    optimizer = plimsoll.optim.SGD(model.parameters(), lr=0.1)
    with plimsoll.LeakWatch() as watch:
        watch.resume()
        for _ in range(10):
            optimizer.zero_grad()
            model(plimsoll.ones(4, 8)).mean().backward()
            optimizer.step()
    assert watch.steps == 10


def test_two_keys_of_one_dictionary_are_the_dictionary():
    weight = plimsoll.ones(4, requires_grad=True)
    kept = {"first": [], "second": []}
    with plimsoll.LeakWatch() as watch:
        for _ in range(40):
            for key in ("first", "second"):
                kept[key].append(weight.exp().sin().cos().sum())
                kept[key][-1].backward()
            watch.step()
    # The losses' own bytes and the nodes behind them are one finding.
    (finding,) = watch.verdicts
    assert finding.held_by.startswith("local `kept` of ") and " -> dict of 2 -> list of" in finding.held_by


def test_calls_of_backward_tell_steps():
    method, function = vars(plimsoll.Tensor)["backward"], plimsoll.autograd.backward
    weight, kept = plimsoll.ones(4, 4, requires_grad=True), []
    for learn in (lambda loss: loss.backward(), lambda loss: plimsoll.autograd.backward(loss)):
        kept.clear()
        with plimsoll.LeakWatch() as watch:
            for _ in range(STEPS):
                x = plimsoll.randn(64, 4)  # kept
                learn((x @ weight).tanh().sum())
                kept.append(x)
        assert watch.text().startswith(f"watch: {STEPS} steps, counted by calls of backward; 1 finding"), watch.text()
        # Beside learning it is no prediction.
        (leak,) = watch.verdicts
        assert (leak.bytes_per_step, leak.line) == (1024, line_of(test_calls_of_backward_tell_steps, "# kept"))
        assert vars(plimsoll.Tensor)["backward"] is method and plimsoll.autograd.backward is function


def test_calls_of_backward_tell_steps_to_a_watch_within_another():
    method, weight = vars(plimsoll.Tensor)["backward"], plimsoll.ones(4, requires_grad=True)
    with plimsoll.LeakWatch() as one, plimsoll.LeakWatch() as other:
        for _ in range(STEPS):
            weight.exp().sum().backward()
    assert (one.steps, other.steps) == (STEPS, STEPS) and vars(plimsoll.Tensor)["backward"] is method


@pytest.mark.filterwarnings("ignore:Using backward")
def test_gradients_with_graphs_are_one_finding_beside_an_optimizer():
    class Net(plimsoll.nn.Module):
        def __init__(self):
            super().__init__()
            layers = [plimsoll.nn.Sequential(plimsoll.nn.Linear(32, 32), plimsoll.nn.Tanh()) for _ in range(3)]
            self.embed, self.blocks = plimsoll.nn.Linear(16, 32), plimsoll.nn.Sequential(*layers)

        def forward(self, x):
            return self.blocks(self.embed(x))

    net = Net()
    optimizer = plimsoll.optim.SGD(net.parameters(), 0.01)
    with plimsoll.LeakWatch() as watch:
        for _ in range(2 * STEPS):
            net(plimsoll.randn(64, 16)).pow(2).mean().backward(create_graph=True)
            optimizer.step()
            for one in net.parameters():
                one.grad.data.zero_()
    (leak,) = watch.verdicts
    assert leak.remedy.startswith("Set every `.grad` to None once it was used"), watch.text()


@pytest.mark.filterwarnings("ignore:Using backward")
def test_what_is_kept_with_its_gradients_is_told_apart_from_a_model():
    class Replay:
        def __init__(self):
            self._buffers = []

    replay, net, other = Replay(), plimsoll.nn.Linear(64, 64), plimsoll.nn.Linear(64, 64)
    with plimsoll.LeakWatch() as watch:
        for _ in range(2 * STEPS):
            x = plimsoll.randn(32, 64, requires_grad=True)
            net(x).tanh().pow(2).sum().backward(create_graph=True)
            net.zero_grad()
            replay._buffers.append(x)
            other(plimsoll.randn(32, 64)).tanh().pow(2).sum().backward(create_graph=True)
            for one in other.parameters():
                one.grad.data.zero_()
            watch.step()
    held = {leak.held_by.split(" of ")[0]: leak.remedy for leak in watch.verdicts}
    assert set(held) == {"local `replay`._buffers", "local `other`._parameters"}, watch.text()
    assert held["local `replay`._buffers"].startswith("Drop tensors that are kept")


def test_two_lists_of_losses_do_not_hold_each_others_graphs():
    nets, first, second = [plimsoll.nn.Linear(4, 4) for _ in range(2)], [], []
    with plimsoll.LeakWatch() as watch:
        for _ in range(2 * STEPS):
            first.append(nets[0](plimsoll.randn(2, 4)).tanh().pow(2).sum())
            second.append(nets[1](plimsoll.randn(2, 4)).tanh().pow(2).sum())
            for net, losses in zip(nets, (first, second)):
                losses[-1].backward()
                net.zero_grad()
            watch.step()
    assert {leak.held_by.split(" of ")[0] for leak in watch.verdicts} == {"local `first`", "local `second`"}, watch.text()
    assert [leak.also_held_by for leak in watch.verdicts] == [[], []]


def test_watches_one_within_another_leave_backward_as_it_was():
    """Also where each of them has put its own over the other's more than once."""
    method, function = vars(plimsoll.Tensor)["backward"], plimsoll.autograd.backward
    net = plimsoll.nn.Linear(8, 8)
    optimizer = plimsoll.optim.SGD(net.parameters(), 0.01)
    for _ in range(2):
        with plimsoll.LeakWatch() as outer, plimsoll.LeakWatch() as inner:
            for _ in range(12):
                net(plimsoll.randn(4, 8)).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
        assert (outer.steps, inner.steps) == (12, 12)
        assert vars(plimsoll.Tensor)["backward"] is method and plimsoll.autograd.backward is function


def learner():
    """A step of a small model by an optimizer; gives its output."""
    model = plimsoll.nn.Linear(64, 64)
    optimizer = plimsoll.optim.SGD(model.parameters(), lr=0.01)

    def step():
        out = model(plimsoll.randn(16, 64))
        optimizer.zero_grad()
        out.square().mean().backward()
        optimizer.step()
        return out.detach()

    return step


@pytest.mark.parametrize("count", [12, 13, 15, 18, 20, 21])
def test_a_short_run_has_a_verdict_and_one_beginning(count):
    step, kept = learner(), []
    with plimsoll.LeakWatch() as watch:
        for _ in range(count):
            kept.append(step())
    (leak,) = watch.verdicts
    assert leak.bytes_per_step == 4096 and "`kept`" in leak.held_by
    assert watch.steps == count


def test_a_look_of_one_thread_leaves_the_clock_where_it_is():
    step, other, kept = learner(), learner(), []
    asked, done = queue.Queue(), queue.Queue()
    looks = []

    def run():
        while asked.get():
            for _ in range(100):
                other()
            done.put(True)

    class Watch(plimsoll.LeakWatch):
        def _look(self):
            super()._look()
            looks.append(threading.current_thread())
            if len(looks) == 2:
                asked.put(True)
                done.get(timeout=60)

    thread = threading.Thread(target=run)
    thread.start()
    with Watch() as watch:
        for _ in range(40):
            kept.append(step())
    asked.put(False)
    thread.join()
    assert watch.steps == 40 and len(looks) > 2 and set(looks) == {threading.main_thread()}
    assert len(watch.verdicts) == 1


def copied_lists(count):
    """Loops that copy a list in each step, with more in it every time, by name."""

    def clone(kept):
        return [x.clone() for x in kept]

    def by_dtype(kept):
        return [x.to(plimsoll.float64) if x.dtype == plimsoll.float32 else x.to(plimsoll.float32) for x in kept]

    def by_layout(kept):
        return [x.t().contiguous() for x in kept]

    def in_a_tuple(kept):
        return tuple(copy.deepcopy(kept))

    for copies in (clone, by_dtype, by_layout, in_a_tuple):

        def loop(copies=copies):
            step, kept = learner(), []
            for at in range(count):
                kept = copies(kept)
                kept = type(kept)([*kept, step() if at % 2 else step().double().float()])

        yield copies.__name__, loop


@pytest.mark.parametrize("name, loop", list(copied_lists(60)))
def test_a_container_that_is_copied_in_each_step_grows(name, loop):
    with plimsoll.LeakWatch() as watch:
        loop()
    (leak,) = watch.verdicts
    assert leak.cause == "a container is copied in each step, with more in it every time", watch.text()
    assert leak.bytes_per_step > 1024 and "kept" in leak.held_by


def test_copies_of_what_is_made_in_the_step_are_none_of_what_was_there():
    # More of them in each step, where the copies of the step before have been.
    step, cache = learner(), []
    with plimsoll.LeakWatch() as watch:
        for at in range(60):
            step()
            cache.clear()
            for _ in range(at + 1):
                x = plimsoll.randn(16, 64)
                cache.append(x.clone())
    assert not watch.findings, watch.text()


def test_casts_of_many_modules_leave_room_for_a_line_that_joins():
    class Cast(plimsoll.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = plimsoll.nn.Parameter(plimsoll.randn(8, 8) / 8)

        def forward(self, x):
            return x @ self.weight.to(plimsoll.float64)

    model = plimsoll.nn.Sequential(*[Cast() for _ in range(80)])
    optimizer = plimsoll.optim.SGD(model.parameters(), lr=0.001)
    seen = plimsoll.zeros(0, 1024)
    with plimsoll.LeakWatch() as watch:
        for at in range(60):
            optimizer.zero_grad()
            model(plimsoll.randn(4, 8, dtype=plimsoll.float64)).square().mean().backward()
            optimizer.step()
            if at > 10:
                seen = plimsoll.cat([seen, plimsoll.ones(1, 1024)])
    (leak,) = watch.verdicts
    assert leak.bytes_per_step == 4096 and "`seen`" in leak.held_by


def test_graphs_on_another_device_are_not_counted():
    kept = []
    with plimsoll.LeakWatch("cpu") as watch, plimsoll.LeakWatch("meta") as other:
        for _ in range(40):
            x = plimsoll.ones(2, device="meta").requires_grad_(True)
            for _ in range(30):
                x = x + 1
            kept.append(x)
            watch.step()
            other.step()
    assert not watch.findings
    (leak,) = other.verdicts
    assert leak.kind == "graph nodes on the host" and "`kept`" in leak.held_by
