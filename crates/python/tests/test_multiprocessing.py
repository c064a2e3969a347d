"""`plimsoll.multiprocessing`: tensors that several processes have at once. Messages are PyTorch 2.15's, recorded from it."""

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time

import plimsoll
import plimsoll.multiprocessing as mp
import pytest
from shared_names import shared_names


@pytest.fixture(autouse=True)
def nothing_is_left():
    gc.collect()
    before = (shared_names(), plimsoll.memory_external())
    yield
    mp.set_sharing_strategy("file_descriptor")
    gc.collect()
    assert (shared_names(), plimsoll.memory_external()) == before
    assert not multiprocessing.active_children()


def in_child(work):
    """Runs it in a forked process; its exit status."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if work() in (None, True) else 2
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# Memory


def test_shared_memory_is_the_childs_too():
    x, own = plimsoll.zeros(3), plimsoll.zeros(3)
    assert not x.is_shared()
    assert x.share_memory_() is x and x.is_shared() and not own.is_shared()

    def write():
        x[1] = 5
        own[1] = 5

    assert in_child(write) == 0
    assert x.tolist() == [0, 5, 0] and own.tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int64", "bool"])
def test_sharing_keeps_what_a_tensor_is(dtype):
    x = plimsoll.arange(24).view(4, 6).to(getattr(plimsoll, dtype)).t()[1:]
    before = x.clone()
    address = x.share_memory_().data_ptr()
    assert plimsoll.equal(x, before) and (x.shape, x.stride(), x.dtype) == ((5, 4), (1, 6), before.dtype)
    assert x.share_memory_().data_ptr() == address
    assert plimsoll.zeros(0).share_memory_().shape == (0,)


def test_all_views_move_to_shared_memory_together():
    base = plimsoll.arange(12.0).view(4, 3)
    before, turned = base[1], base.t()
    view = base[1:3]
    assert view.share_memory_() is view and view._version == 0
    assert base.is_shared() and before.is_shared() and turned.is_shared() and base.untyped_storage().is_shared()

    def write():
        turned.fill_(7)

    assert in_child(write) == 0
    assert base.tolist() == [[7.0] * 3] * 4 and before.tolist() == [7.0] * 3
    base[0] = 1
    assert turned[:, 0].tolist() == [1.0] * 3


def test_a_view_that_is_sent_takes_its_base_along():
    base = plimsoll.zeros(4, 3)
    queue = multiprocessing.get_context("fork").Queue()
    queue.put(base[1:3].t())
    came = queue.get(timeout=60)
    came.fill_(1)
    assert base.is_shared() and base.sum().item() == 6 and (came.stride(), came.storage_offset()) == ((1, 3), 3)


def test_a_graph_goes_on_with_what_was_shared():
    x = plimsoll.ones(3, requires_grad=True)
    y = x * 2
    z = y * y
    y.share_memory_()
    z.sum().backward()
    assert x.grad.tolist() == [8, 8, 8] and y.is_shared() and not y.is_leaf


def test_an_array_keeps_the_memory_it_knows():
    numpy = pytest.importorskip("numpy")
    x = plimsoll.arange(4.0)
    array = x.numpy()
    x.share_memory_()
    x[0] = 9
    assert array.tolist() == [0, 1, 2, 3] and x.tolist() == [9, 1, 2, 3]
    array += 1
    assert numpy.array_equal(array, [1, 2, 3, 4]) and x.numpy()[0] == 9


def test_storages_share_too():
    x = plimsoll.zeros(3)
    storage = x.untyped_storage()
    assert not storage.is_shared()
    assert storage.share_memory_() is storage and storage.is_shared() and x.is_shared()
    assert plimsoll.zeros(0).share_memory_().is_shared()


def test_shared_bytes_are_external_and_go_with_the_tensor():
    device = plimsoll.private_cpu()
    before = plimsoll.memory_external()
    x = plimsoll.zeros(1000).share_memory_()
    assert plimsoll.memory_external() - before == 4000
    view = x[10:]
    del x
    assert plimsoll.memory_external() - before == 4000 and view.is_shared()
    del view
    assert plimsoll.memory_external() == before
    assert plimsoll.memory_allocated(device) == 0


def test_a_shared_parameter_stays_a_leaf_with_its_gradient():
    p = plimsoll.nn.Parameter(plimsoll.ones(3))
    (p * 2).sum().backward()
    p.share_memory_()
    assert p.is_leaf and p.requires_grad and p.grad.tolist() == [2, 2, 2]
    (p * 3).sum().backward()
    assert p.grad.tolist() == [5, 5, 5]


def test_modules_and_optimizers_share_what_they_have():
    model = plimsoll.nn.Sequential(plimsoll.nn.Linear(3, 2), plimsoll.nn.BatchNorm1d(2)).share_memory()
    assert all(tensor.is_shared() for tensor in model.state_dict().values())
    optimizer = plimsoll.optim.Adagrad(model.parameters())
    optimizer.share_memory()
    assert all(state["sum"].is_shared() for state in optimizer.state.values())

    def step():
        model(plimsoll.rand(4, 3)).square().sum().backward()
        optimizer.step()

    before = [p.clone() for p in model.parameters()]
    assert in_child(step) == 0
    assert any(not plimsoll.equal(old, new) for old, new in zip(before, model.parameters()))


def test_what_has_no_memory_of_the_host():
    dry = plimsoll.zeros(3, device=plimsoll.dry("cpu"))
    assert not dry.is_shared()
    with pytest.raises(RuntimeError, match="share_memory_: only memory of the host"):
        dry.share_memory_()


# Queues, pipes, pools


@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
def test_a_queue_hands_over_the_memory_itself(strategy):
    mp.set_sharing_strategy(strategy)
    assert mp.get_sharing_strategy() == strategy
    there, back = mp.SimpleQueue(), mp.SimpleQueue()

    def child(there, back):
        x, text, p = there.get()
        x[0] = 7
        back.put((x[1:], text, p))
        there.get()

    x, p = plimsoll.zeros(4), plimsoll.nn.Parameter(plimsoll.ones(2))
    process = mp.Process(target=child, args=(there, back))
    process.start()
    there.put((x, "text", p))
    part, text, q = back.get()
    assert x.is_shared() and x.tolist() == [7, 0, 0, 0] and text == "text"
    part[0] = 3
    q.data[0] = 9
    assert x.tolist() == [7, 3, 0, 0] and p.tolist() == [9, 1]
    assert type(q) is plimsoll.nn.Parameter and q.requires_grad
    there.put(None)
    process.join()
    assert process.exitcode == 0
    # What comes back is mapped once: it is the same memory at the same address.
    assert part.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


def test_a_queue_with_a_thread_a_pipe_and_a_pool():
    queue = mp.Queue()
    queue.put([plimsoll.ones(2), {"a": plimsoll.zeros(0, 3)}])
    one, rest = queue.get(timeout=20)
    assert one.tolist() == [1, 1] and rest["a"].shape == (0, 3)
    queue.close()
    queue.join_thread()
    ours, theirs = mp.Pipe()
    ours.send(plimsoll.ones(3, dtype=plimsoll.bfloat16))
    assert theirs.recv().float().tolist() == [1, 1, 1]
    ours.close(), theirs.close()
    with mp.Pool(2) as pool:
        assert [int(x) for x in pool.map(plimsoll.sum, [plimsoll.full((3,), float(n)) for n in range(4)])] == [0, 3, 6, 9]
        pool.close()
        pool.join()


def test_strategies():
    assert mp.get_all_sharing_strategies() == {"file_descriptor", "file_system"}
    with pytest.raises(AssertionError, match="invalid sharing strategy 'pigeon'"):
        mp.set_sharing_strategy("pigeon")


def test_names_that_nobody_takes_are_removed_at_the_end():
    program = """
import plimsoll as pm, plimsoll.multiprocessing as mp, os
mp.set_sharing_strategy("file_system")
from multiprocessing.reduction import ForkingPickler
sent = bytes(ForkingPickler.dumps(pm.ones(3)))
assert [name for name in os.listdir("/dev/shm") if name.startswith(f"plimsoll_{os.getpid()}_")]
print(os.getpid())
"""
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    end = time.monotonic() + 10
    while (left := [n for n in os.listdir("/dev/shm") if f"_{ran.stdout.strip()}_" in n]) and time.monotonic() < end:
        time.sleep(0.05)
    assert not left


def test_what_is_refused():
    grown = plimsoll.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which requires_grad"):
        mp.reductions.reduce_tensor(grown)
    with pytest.raises(RuntimeError, match="the memory of .* is not shared between processes"):
        mp.reductions.reduce_tensor(plimsoll.zeros(2, device=plimsoll.stand_in()))


def test_an_ordinary_pickle_is_a_copy():
    x = plimsoll.ones(2).share_memory_()
    copy = pickle.loads(pickle.dumps(x))
    copy[0] = 5
    assert x.tolist() == [1, 1] and not copy.is_shared()


# Processes started together


def write_at(index, x):
    x[index] = index + 1.0


def fail_at_one(index, x):
    if index == 1:
        raise ValueError("one")
    time.sleep(60)


def leave(index, how):
    how(index)


@pytest.fixture
def findable(monkeypatch):
    """New interpreters find the package and this module."""
    folder = os.path.dirname(os.path.dirname(plimsoll.__file__))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([folder, os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")]))
    yield
    multiprocessing.resource_tracker._resource_tracker._stop()


def test_spawn_runs_a_function_in_new_interpreters(findable):
    x = plimsoll.zeros(2).share_memory_()
    assert mp.spawn(write_at, args=(x,), nprocs=2) is None
    assert x.tolist() == [1, 2]


def test_processes_that_are_started_together():
    x = plimsoll.zeros(3).share_memory_()
    together = mp.start_processes(write_at, args=(x,), nprocs=3, join=False, start_method="fork")
    assert len(together.pids()) == 3
    while not together.join(timeout=20):
        pass
    assert x.tolist() == [1, 2, 3] and together.join()


def test_the_first_that_fails_ends_the_others():
    with pytest.raises(mp.ProcessRaisedException) as raised:
        mp.start_processes(fail_at_one, args=(None,), nprocs=2, start_method="fork")
    text = str(raised.value)
    assert text.startswith("\n\n-- Process 1 terminated with the following error:\nTraceback (most recent call last):\n")
    assert text.endswith("ValueError: one\n")
    assert raised.value.error_index == 1 and raised.value.error_pid > 0
    again = pickle.loads(pickle.dumps(raised.value))
    assert (again.error_index, str(again)) == (1, text)


@pytest.mark.parametrize(
    ("how", "words", "code", "name"),
    [
        (lambda index: sys.exit(3), "process 0 terminated with exit code 3", 3, None),
        (lambda index: os.kill(os.getpid(), signal.SIGKILL), "process 0 terminated with signal SIGKILL", -9, "SIGKILL"),
    ],
)
def test_one_that_leaves_is_told_of(how, words, code, name):
    with pytest.raises(mp.ProcessExitedException, match=words) as raised:
        mp.start_processes(leave, args=(how,), start_method="fork")
    assert (raised.value.exit_code, raised.value.signal_name) == (code, name)


def test_old_names():
    with pytest.warns(FutureWarning, match="only supports start_method=spawn"), pytest.raises(Exception, match="pickle"):
        mp.spawn(lambda index: None, start_method="fork")
    with pytest.warns(UserWarning, match="SpawnContext is renamed"):
        mp.SpawnContext([], [])
    multiprocessing.resource_tracker._resource_tracker._stop()
    assert mp.Process is multiprocessing.Process and mp.get_context("fork") is multiprocessing.get_context("fork")


# Programs written for PyTorch

SPAWNS = """
import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, TensorDataset


def write_at(index, x):
    assert "plimsoll" in torch.__version__ and torch.cuda.is_available()
    x[index] = index + 1.0


if __name__ == "__main__":
    x = torch.zeros(2).share_memory_()
    mp.spawn(write_at, args=(x,), nprocs=2)
    print(x.tolist())
    for method in ("fork", "spawn", "forkserver"):
        loader = DataLoader(TensorDataset(torch.arange(4.0)), batch_size=2, num_workers=1, multiprocessing_context=method)
        print(method, [batch.tolist() for [batch] in loader])
"""


def test_new_interpreters_of_a_program_find_torch_as_it_does(findable, tmp_path):
    (tmp_path / "spawns.py").write_text(SPAWNS)
    command = [sys.executable, "-m", "plimsoll", "run", "--device-memory", "64MiB", "spawns.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    batches = "[[0.0, 1.0], [2.0, 3.0]]"
    assert ran.stdout == f"[1.0, 2.0]\nfork {batches}\nspawn {batches}\nforkserver {batches}\n"
    assert ran.stderr.count("plimsoll run: spawns.py") == 1
