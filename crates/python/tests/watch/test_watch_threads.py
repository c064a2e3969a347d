"""What the watch may do to a program while it runs: gradients are read by one file, and only while all other threads are idle; an
error inside the watch ends the watch and not the program; what the program raises arrives."""

import contextlib
import gc
import json
import re
import signal
import sys
import threading
import time

import pytest

torch = pytest.importorskip("torch")

from torch.optim.optimizer import _global_optimizer_post_hooks as _hooks  # noqa: E402
from torch.optim.optimizer import _global_optimizer_pre_hooks as _before  # noqa: E402
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook  # noqa: E402

import runner  # noqa: E402

watch = runner.load()
from plimsoll_watch import _making, _phases, _put_off, _session, _steps, _undisturbed  # noqa: E402
from plimsoll_watch._census import Census  # noqa: E402
from plimsoll_watch._undisturbed import Moment  # noqa: E402

VIEW = """
import torch
def main():
    model = torch.nn.Linear(16, 16); optimizer = torch.optim.SGD(model.parameters(), lr=.1); kept = []
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(160, 16)), 8)
    for _ in range(3):
        for at, (x,) in enumerate(data):
            parts = None
            y = model(x.repeat(4, 1)); optimizer.zero_grad(); y.mean().backward(); optimizer.step(); kept.append(y.detach())
            if at == len(data) - 1:
                whole = model(x).clone(); parts = whole.unbind(0); whole.mul_(2)
    print("trained")
main()
"""


def test_one_file_reads_gradients_and_graphs():
    reads = re.compile(r"(?<![`\w.])\w+\.(grad|grad_fn|is_leaf|retains_grad|next_functions|_sequence_nr|variable)\b|_raw_saved")
    for file in runner.PACKAGE.glob("*.py"):
        code = re.sub(r'""".*?"""|"[^"\n]*"|#.*', "", file.read_text(), flags=re.S)
        found = [one.group() for one in reads.finditer(code) if one.group() != "torch.grad"]
        assert not found or file.name == "_gradients.py", (file.name, found)


@pytest.mark.parametrize("started_by", ["threading", "_thread"])
def test_gradients_are_not_read_while_another_thread_computes_them(started_by):
    import _thread

    x = torch.ones(64, requires_grad=True)
    x.sum().backward()
    gradient = x.grad.untyped_storage()._cdata
    inside, goes_on, is_over = threading.Event(), threading.Event(), threading.Event()

    def wait(_):
        inside.set()
        goes_on.wait(60)

    def learn():
        x.sum().backward()
        is_over.set()

    x.register_hook(wait)
    interval, threads = sys.getswitchinterval(), threading.enumerate()
    if started_by == "threading":
        threading.Thread(target=learn).start()
    else:
        _thread.start_new_thread(learn, ())
    try:
        assert inside.wait(60)
        with Moment() as moment:
            assert not moment.may_read()
        census = Census(set())
        assert not census.is_whole and gradient not in census.owners
    finally:
        goes_on.set()
        assert is_over.wait(60)
    assert sys.getswitchinterval() == interval
    while len(sys._current_frames()) > len(threads):
        time.sleep(0.01)
    census = Census(set())
    assert census.is_whole and gradient in census.owners
    assert threading.enumerate() == threads


def test_gradients_are_read_beside_a_thread_that_sleeps():
    """In a function that names gradients, and without a lock of `threading`: only the system knows that it is idle."""
    if not sys.platform.startswith("linux"):
        pytest.skip("asked of Linux")
    x = torch.ones(64, requires_grad=True)
    x.sum().backward()
    gradient, lock = x.grad.untyped_storage()._cdata, threading.Lock()
    lock.acquire()

    def monitor():
        lock.acquire()
        return x.grad

    other = threading.Thread(target=monitor)
    other.start()
    try:
        census = Census(set(), patience=60)
        assert census.is_whole and gradient in census.owners
    finally:
        lock.release()
        other.join()


@contextlib.contextmanager
def beside(work):
    """A block beside a thread that works until its end."""
    is_over = threading.Event()
    other = threading.Thread(target=work, args=(is_over,))
    other.start()
    try:
        yield
    finally:
        is_over.set()
        other.join()


def compute(is_over):
    while not is_over.is_set():
        sum(range(1000))


def test_nothing_is_read_when_the_moment_is_over():
    """A long census: other threads may have got the interpreter since, and one of them computes."""
    from plimsoll_watch._gradients import Gradients

    y = torch.ones(4, requires_grad=True) * 2
    computes = threading.Event()

    def later(is_over):
        computes.wait(60)
        compute(is_over)

    with beside(later):
        with Gradients(patience=60) as gradients:
            node = gradients.node(y)
            assert node is not None and gradients.before(node) and gradients.is_whole
            computes.set()
            gradients._moment._until = time.perf_counter()
            assert gradients.node(y) is None and gradients.before(node) == [] and not gradients.is_whole
        computes.set()


def test_a_census_that_takes_long_is_whole_beside_threads_that_are_idle(monkeypatch):
    """Whenever the moment is over it is asked again whether they are."""
    monkeypatch.setattr(_undisturbed, "_LEAST_KEPT", 0.001)
    monkeypatch.setattr(_undisturbed, "_MOST_KEPT", 0.001)
    kept, began = [torch.ones(4, requires_grad=True) * 2 for _ in range(5000)], sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    try:
        with beside(lambda is_over: is_over.wait(60)):
            census = Census(set(), patience=60)
            assert census.is_whole and len(kept) <= sum(owner.has_graph for owner in census.owners.values())
        assert sys.getswitchinterval() == 0.0005
    finally:
        sys.setswitchinterval(began)


def test_what_a_handler_raises_leaves_no_moment_behind(monkeypatch):
    class Timeout(Exception):
        pass

    def ring(*_):
        raise Timeout

    interval = sys.getswitchinterval()
    with beside(lambda is_over: is_over.wait(60)):
        with monkeypatch.context() as patched, pytest.raises(Timeout):
            patched.setattr(_undisturbed, "_are_others_idle", ring)
            with Moment():
                raise AssertionError
        assert (sys.getswitchinterval(), Moment._of_threads) == (interval, {})
        # In its end: the next end of a step makes up for it.
        with monkeypatch.context() as patched, pytest.raises(Timeout):
            patched.setattr(Moment, "__exit__", ring)
            with Moment(patience=60):
                assert sys.getswitchinterval() > interval
        assert sys.getswitchinterval() > interval
        with watch():
            watch.step()
            assert (sys.getswitchinterval(), Moment._of_threads) == (interval, {})


def test_moments_of_two_threads_leave_the_interpreter_as_it_was():
    one, other, before = object(), object(), sys.getswitchinterval()
    kept = _undisturbed._Kept()
    assert kept.keep(id(one), 0.2) == pytest.approx(0.2) and kept.keep(id(other), 0.4) == pytest.approx(0.4)
    kept.leave(id(one))
    assert sys.getswitchinterval() == pytest.approx(0.4)
    kept.leave(id(other))
    kept.leave(id(other))
    assert sys.getswitchinterval() == before
    # What the program sets meanwhile stays.
    kept.keep(id(one), 0.2)
    sys.setswitchinterval(0.01)
    kept.leave(id(one))
    assert sys.getswitchinterval() == pytest.approx(0.01)
    sys.setswitchinterval(before)


@pytest.mark.parametrize("missing", ["folder", "descriptors"])
def test_what_the_system_does_not_tell_is_asked_of_the_interpreter(missing, monkeypatch, tmp_path):
    """Without `/proc`, or where no more files can be opened: threads that wait in Python's modules are known by that."""

    if missing == "folder":
        monkeypatch.setattr(_undisturbed, "_C", None)
    else:
        monkeypatch.setattr(_undisturbed, "_TASKS", str(tmp_path / "none"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    losses = []
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with beside(lambda is_over: is_over.wait(60)), watch(live=True) as watched:
        for _ in range(40):
            optimizer.zero_grad()
            loss = torch.nn.Sequential(*[model] * 3)(torch.ones(4, 8)).square().mean()
            loss.backward()
            losses.append(loss)
            optimizer.step()
    (finding,) = watched.verdicts
    assert "local `losses`" in finding.held_by and "stopped" not in watched.text()
    assert watched._session.looks.put_off.count <= 1


def test_a_look_that_is_not_whole_is_not_judged_and_stays_due(monkeypatch):
    """Nothing is named or counted by it; the next one that is whole tells the same as ever."""
    is_idle = [False]
    monkeypatch.setattr(Moment, "may_read", lambda self: is_idle[0])
    # However slow the machine is.
    monkeypatch.setattr(_put_off, "SPENT_AT_ONCE", 1e9)
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    with watch() as watched:
        for at in range(60):
            is_idle[0] = at > 20
            optimizer.zero_grad()
            loss = torch.nn.Sequential(*[model] * 3)(torch.ones(4, 8)).square().mean()
            loss.backward()
            losses.append(loss)
            optimizer.step()
            if at == 20:
                assert watched.findings == [] and "none was taken since" in watched.text()
    (finding,) = watched.verdicts
    assert finding.kind == "graph nodes on the host" and "losses" in finding.held_by
    told = " ".join(watched.text().split())
    assert "other threads were computing" in told and "none was taken since" not in told


def test_an_error_inside_the_watch_is_not_the_programs():
    kept, ends = [], []
    with watch() as watched:
        for at in range(40):
            kept.append(torch.ones(64, 64))
            watch.step()
            if at == 20:
                # What it needs is not there: an error in the watch's own code.
                watched._session.growth = None
                watch.epoch()
                watched._session.look_now()
                watched._session.ask(lambda: ends.append(1))
    assert "the watch stopped at step 21: AttributeError: 'NoneType'" in " ".join(watched.text().split())
    assert ends == []


def test_an_error_at_an_optimizers_step_leaves_the_programs_hooks_alone():
    """PyTorch calls them in turn, and fails if one is taken away meanwhile."""
    model, called = torch.nn.Linear(8, 8), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = len(_hooks)
    with watch() as watched:
        handle = register_optimizer_step_post_hook(lambda *_: called.append(1))
        watched._session.growth = None
        for _ in range(20):
            model(torch.ones(4, 8)).sum().backward()
            optimizer.step()
    handle.remove()
    assert len(called) == 20 and "the watch stopped at step" in watched.text() and len(_hooks) == before


def test_views_that_were_written_to_end_no_watch(tmp_path):
    program = tmp_path / "view.py"
    program.write_text(VIEW)
    ran = runner.watched(program)
    assert (ran.status, ran.output, ran.errors) == (0, "trained\n", "")
    assert ran.report["steps"] == 60 and ran.report["notes"] == []


def test_what_a_handler_of_the_program_raises_arrives(monkeypatch):
    class Timeout(Exception):
        pass

    def ring(*_):
        raise Timeout

    before = signal.signal(signal.SIGALRM, ring)
    look = _session.Session._judge

    def rung(self, step):
        signal.raise_signal(signal.SIGALRM)
        look(self, step)

    monkeypatch.setattr(_session.Session, "_judge", rung)
    try:
        with watch() as watched:
            with pytest.raises(Timeout):
                for _ in range(40):
                    watch.step()
        assert "stopped" not in watched.text()
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_context_may_have_any_names():
    class Tripled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.variable, ctx.name, ctx._sequence_nr = 3, "tripled", None
            return x * 3

        @staticmethod
        def backward(ctx, gradient):
            return gradient * ctx.variable

    x = torch.ones(4, requires_grad=True)
    y = Tripled.apply(x)
    assert Census(set()).owners[y.untyped_storage()._cdata].has_graph


def test_none_of_the_programs_code_is_run():
    asked = []

    class Own(torch.Tensor):
        def __getattr__(self, name):
            asked.append(name)
            raise AttributeError(name)

        @property
        def grad(self):
            asked.append("grad")

        def dim(self):
            asked.append("dim")

    x = torch.ones(4, 8).as_subclass(Own).requires_grad_()
    asked.clear()
    owner = Census(set()).owners[torch.Tensor.untyped_storage(x)._cdata]
    assert (owner.kind, asked) == ("input that takes gradients", [])


def test_a_dictionary_of_locals_that_the_program_has_is_not_emptied():
    kept = {}

    def take():
        kept["names"] = sys._getframe(1).f_locals

    def train():
        name = "run-7"
        take()
        for _ in range(20):
            watch.step()
        return name

    with watch():
        train()
    assert kept["names"]["name"] == "run-7"


def test_what_only_an_iterator_of_python_holds_is_named():
    import itertools

    def batches():
        for _ in range(60):
            yield torch.ones(32, 32)

    with watch() as watched:
        for at, _ in enumerate(itertools.cycle(batches())):
            watch.step()
            if at == 40:
                # While the loop runs: afterwards nothing is held.
                watched._session.look_now()
                (finding,) = watched.findings
                break
    assert finding.held_by.startswith("a running loop's cycle -> inside a cycle -> list of")


def test_a_window_that_was_opened_in_another_thread_is_opened_anew_after_it():
    from torch.utils._python_dispatch import _get_current_dispatch_mode
    from plimsoll_watch._making import Making

    making, is_open, goes_on = Making(), threading.Event(), threading.Event()

    def opens():
        making.open()
        is_open.set()
        goes_on.wait(60)

    other = threading.Thread(target=opens)
    other.start()
    assert is_open.wait(60) and not making.open() and "another thread" in making.refused
    # There is one at a time, and the other thread has it: a step that ends here is not noted.
    making.tick(2)
    assert making.is_noting and making.noted == []
    assert _get_current_dispatch_mode() is None
    goes_on.set()
    other.join()
    while len(sys._current_frames()) > len(threading.enumerate()):
        time.sleep(0.01)
    assert making.open() and making.refused == "" and _get_current_dispatch_mode() is not None
    kept = torch.ones(8)
    making.close()
    assert kept.untyped_storage()._cdata in making.rows and not making.is_open


def test_no_window_is_opened_within_backward():
    from plimsoll_watch._making import Making

    making, opened = Making(), []
    x = torch.ones(4, requires_grad=True)
    x.register_hook(lambda _: opened.append(making.open()))
    x.sum().backward()
    assert opened == [False] and "within backward" in making.refused
    assert making.open()
    making.close()


def test_a_second_watch_keeps_its_socket(tmp_path, monkeypatch):
    import os

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    first = watch(live=True)
    with first:
        path = first._session.live._socket.path
    with watch(live=True) as second:
        assert second._session.live._socket.path == path
        # What the first one's thread does when it comes by.
        first._session.live._socket.close()
        assert os.path.exists(path)
    assert not os.path.exists(path)


def test_two_walks_at_once_have_nothing_in_common():
    """In two threads: what one has learnt of classes, another does not forget."""
    from plimsoll_watch._holders import Walk

    class Slotted:
        __slots__ = ("value",)

    one, other = (Walk(set(), set(), lambda value, hold: False) for _ in range(2))
    for walk in (one, other):
        assert [name for name, _ in walk.read.slots(Slotted)] == ["value"]
    other.close()
    assert one.read._member_slots.keys() == {Slotted} and not other.read._member_slots
    one.close()


def test_what_a_subclass_of_local_has_is_read_and_not_begun():
    begun = []

    class Context(threading.local):
        def __init__(self):
            begun.append(threading.get_ident())
            self.seen = torch.ones(8)

    context = Context()
    key = context.seen.untyped_storage()._cdata
    owners = []
    # Here it is begun already, there it is not; what this thread has is found from both.
    other = threading.Thread(target=lambda: owners.append(Census(set(), patience=60).owners[key]))
    other.start()
    other.join()
    for owner in (*owners, Census(set()).owners[key]):
        assert owner.hold.words() == ".seen" and owner.hold.parent.name == "context"
    assert begun == [threading.get_ident()]


@pytest.mark.parametrize("part", ["steps", "calls", "batches", "phases"])
def test_an_error_on_the_way_into_the_watch_is_not_the_programs(part, monkeypatch):
    """Where steps, calls, batches and phases are heard of: it ends the watch, and the program goes on."""

    of = {
        "steps": (_steps.Steps, "_parameters_of"),
        "calls": (_making.Making, "be_heard"),
        "batches": (_steps.Steps, "epoch"),
        "phases": (_phases.Phases, "_mark"),
    }[part]
    # What a test raises would be the program's own.
    monkeypatch.setattr(*of, None)
    watched = watch()
    start = _session.Session.start
    monkeypatch.setattr(_session.Session, "start", lambda self: (self.follow_phases(), start(self))[1])
    model, done = torch.nn.Linear(8, 8), 0
    with watched:
        for _ in range(3):
            for (x,) in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(40, 8)), 4):
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                model(x).sum().backward()
                optimizer.step()
                done += 1
    assert done == 30 and "TypeError: 'NoneType' object is not callable" in " ".join(watched.text().split())


def test_what_could_not_be_looked_at_is_told_as_growing(monkeypatch):
    """The line is known without a look. What is found at the end, when the function has returned, says nothing."""
    is_idle = [False]
    monkeypatch.setattr(Moment, "may_read", lambda self: is_idle[0])
    monkeypatch.setattr(_put_off, "SPENT_AT_ONCE", 1e9)

    def learn():
        model, kept = torch.nn.Linear(64, 64), []
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(40):
            optimizer.zero_grad()
            out = model(torch.ones(32, 64))
            out.square().mean().backward()
            optimizer.step()
            kept.append(out.detach())

    with watch() as watched:
        learn()
        is_idle[0] = True
    (finding,) = json.loads(watched.json())["findings"]
    assert (finding["bytes_per_step"], finding["kind"], finding["verdict"]) == (32 * 64 * 4, "not known", False)
    assert finding["line"] == f"test_watch_threads.py:{learn.__code__.co_firstlineno + 5}"
    told = " ".join(watched.text().split())
    assert "holder not known: other threads were computing" in told and "none was taken since" in told
    assert "not tensors" not in told
    excluded = watch(exclude=[finding["line"]])
    is_idle[0] = False
    with excluded:
        learn()
    assert excluded.findings == []


@pytest.mark.parametrize("is_before", [False, True])
def test_a_watch_that_ends_while_a_thread_is_in_a_step_leaves_its_hooks_alone(is_before, monkeypatch):
    """PyTorch goes through all of them at the end of a step, and fails if one leaves meanwhile."""
    start = _session.Session.start
    monkeypatch.setattr(_session.Session, "start", lambda self: (self.follow_phases(), start(self))[1])
    before = [*_hooks.values(), *_before.values()]
    model, learnt = torch.nn.Linear(4, 4), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inside, goes_on = threading.Event(), threading.Event()

    def waits(*_):
        inside.set()
        goes_on.wait(60)

    def learn():
        model(torch.ones(1, 4)).sum().backward()
        optimizer.step()
        learnt.append(True)

    other = threading.Thread(target=learn)
    with contextlib.ExitStack() as handles:
        with watch() as watched:
            register = register_optimizer_step_pre_hook if is_before else register_optimizer_step_post_hook
            # Another comes behind it: PyTorch looks for the next one.
            for hook in (waits, lambda *_: None):
                handles.callback(register(hook).remove)
            other.start()
            assert inside.wait(60)
        count = watched._session.steps.count
        goes_on.set()
        other.join()
        assert learnt == [True]
        optimizer.step()
        assert watched._session.steps.count == count
    # The next one that comes takes them out.
    with watch():
        pass
    assert [*_hooks.values(), *_before.values()] == before


def test_rows_of_another_thread_come_while_a_step_is_judged():
    from plimsoll_watch._making import Making
    from plimsoll_watch._windows import Windows

    making = Making()

    class Row:
        place, step, epoch = None, 1, 0

        def is_alive(self):
            making.rows[len(making.rows)] = making.added_to[len(making.rows)] = Row()
            return True

    making.rows[0] = making.added_to[0] = Row()
    windows = Windows(making)
    windows._sampled = 1
    windows._judge_sample(8)
    assert windows.alarmed == {None} and windows._is_rare_keeper_possible(8) and making.prune() == []


def learn(optimizer, steps):
    """Whoever learns by this does the same."""
    for _ in range(steps):
        optimizer.step()


def optimizer_alike():
    return torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=0.1)


def test_a_thread_whose_step_is_looked_at_goes_on_telling_steps():
    """Another may learn on meanwhile, however far."""
    one, other = optimizer_alike(), optimizer_alike()

    def look(_):
        if steps.count == 3:
            beside = threading.Thread(target=learn, args=(other, 3 * _steps.QUIET_ELSEWHERE))
            beside.start()
            beside.join()

    steps = _steps.Steps(look, lambda: None, lambda: None, lambda: None)
    steps.start()
    try:
        learn(one, 10)
    finally:
        steps.stop()
    assert steps.count == 10


def test_a_thread_that_tells_steps_no_more_takes_its_window_off():
    from torch.utils._python_dispatch import _get_current_dispatch_mode

    one, other, modes = optimizer_alike(), optimizer_alike(), []
    is_open, goes_on = threading.Event(), threading.Event()

    def first():
        learn(one, 5)
        modes.append(_get_current_dispatch_mode())
        is_open.set()
        goes_on.wait(60)
        learn(one, 1)
        modes.append(_get_current_dispatch_mode())

    beside = threading.Thread(target=first)
    with watch() as watched:
        making = watched._session.making
        beside.start()
        assert is_open.wait(60) and making.is_noting and not making.is_here
        learn(other, _steps.QUIET_ELSEWHERE + 4)
        goes_on.set()
        beside.join()
        assert not making.is_noting and modes[0] is not None and modes[1] is None
        learn(other, 20)
        assert making.noted[-1] > 5


def test_of_a_step_that_was_noted_in_part_nothing_is_told():
    """As of one in which another thread has begun to tell steps: it may have made anything."""
    from typing import NamedTuple

    from plimsoll_watch._growth import Growth

    class Row(NamedTuple):
        step: int
        bytes: int = 2048
        place: None = None
        epoch: int = 0

    noted = [4, 5, 6, 20, 21, 22]
    (suspect,) = Growth().suspects([Row(step) for step in (*noted, 7, 7, 7)], noted, 30).values()
    assert (suspect.bytes_per_step, suspect.judged_steps) == (2048, 6)


def test_no_collection_comes_while_frames_are_asked_for(monkeypatch):
    """Before Python 3.12 one may wait for a lock that the question has."""
    from plimsoll_watch._frames import frames_of_threads

    may_come = []
    asked = sys._current_frames

    def heard():
        may_come.append(gc.isenabled())
        return asked()

    monkeypatch.setattr(sys, "_current_frames", heard)
    frames = frames_of_threads()
    assert may_come == [sys.version_info >= (3, 12)] and gc.isenabled()
    assert frames[threading.get_ident()] is sys._getframe()
    gc.disable()
    try:
        frames_of_threads()
        assert not gc.isenabled()
    finally:
        gc.enable()
