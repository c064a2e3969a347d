"""Stand-ins for accelerators from Python, and `nn.DataParallel` on two of them: streams, late errors, values and bytes."""

import copy
import gc
import pickle

import plimsoll as pm
import pytest
from plimsoll import nn
from plimsoll.nn.parallel import gather, replicate, scatter


def rounded(nbytes):
    return -(-nbytes // 512) * 512


def settled(*devices):
    """Allocated bytes, once everything that was queued is done."""
    gc.collect()
    for device in devices:
        pm.synchronize(device)
    return tuple(pm.memory_allocated(device) for device in devices)


def network(device):
    pm.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 32)).to(device)


def test_a_stand_in_computes_and_has_a_capacity():
    gpu = pm.stand_in(capacity_bytes=8 << 20)
    assert (gpu.type, pm.device(gpu), pm.device(str(gpu))) == ("standin", gpu, gpu)
    assert pickle.loads(pickle.dumps(gpu)) == gpu
    x = pm.arange(4.0).to(gpu)
    assert (x + 1).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert pm.memory_allocated(gpu) == 512
    with pytest.raises(pm.OutOfMemoryError, match=str(gpu)):
        pm.empty(1 << 22, device=gpu)
    assert pm.stand_in() != gpu  # each call opens another one
    with pytest.raises(RuntimeError, match="no stand-in number 9999 is open"):
        pm.device("standin:9999")
    with pytest.raises(ValueError, match="no key `colour`"):
        pm.stand_in(configuration="colour:blue")


def test_errors_come_late_and_name_their_line():
    gpu = pm.stand_in()
    table, index = pm.ones(3, 2, device=gpu), pm.tensor([0, 5]).to(gpu)
    table[index]  # queued, and refused later
    with pytest.raises(IndexError, match=r"test_stand_in\.py"):
        pm.synchronize(gpu)
    assert table.sum().item() == 6.0  # the device works on


def test_replicate_scatter_and_gather():
    first, second = pm.stand_in(), pm.stand_in()
    module = network(first)
    own = sum(rounded(p.nbytes) for p in module.parameters())
    assert settled(first, second) == (own, 0)
    replicas = replicate(module, [first, second])
    assert settled(first, second) == (own, own)  # shared on the first, copied to the second
    x = pm.randn(6, 64).to(first)
    parts = scatter(x, [first, second])
    assert [part.device for part in parts] == [first, second]
    assert settled(first, second) == (own + rounded(x.nbytes), own + rounded(x.nbytes // 2))
    results = [replica(part) for replica, part in zip(replicas, parts)]
    whole = gather(results, first)
    assert whole.device == first and pm.allclose(whole.cpu(), module(x).cpu(), atol=1e-6)
    del replicas, parts, results, whole, x
    assert settled(first, second) == (own, 0)


def test_data_parallel_gives_what_the_module_alone_gives():
    first, second = pm.stand_in(), pm.stand_in()
    module = network(first)
    alone = copy.deepcopy(module).to("cpu")
    parallel = nn.DataParallel(module, [first, second])
    assert list(parallel.state_dict()) == ["module." + key for key in alone.state_dict()]
    own = sum(rounded(p.nbytes) for p in module.parameters())
    x = pm.randn(10, 64)
    there = x.to(first)
    y = parallel(there)
    assert (y.device, tuple(y.shape)) == (first, (10, 32))
    assert pm.allclose(y.cpu(), alone(x), atol=1e-6)
    # Of its copies the second keeps what backward needs: its rows, the result of tanh, the second layer's weight.
    kept = rounded(5 * 64 * 4) + rounded(5 * 128 * 4) + rounded(128 * 32 * 4)
    assert settled(second) == (kept,)
    y.square().sum().backward()
    alone(x).square().sum().backward()
    for ours, theirs in zip(module.parameters(), alone.parameters()):
        assert ours.grad.device == first
        assert pm.allclose(ours.grad.cpu(), theirs.grad, rtol=1e-4, atol=1e-5)
    del y, there
    # Parameters and gradients are on the first; the second has nothing.
    assert settled(first, second) == (2 * own, 0)
    assert pm.memory_by_kind(first) == {"parameter": own, "gradient": own}
    del parallel, module, ours
    assert settled(first, second) == (0, 0)


def test_training_on_two_is_training_on_one():
    first, second = pm.stand_in(), pm.stand_in()
    module = network(first)
    alone = copy.deepcopy(module).to("cpu")
    x = pm.randn(8, 64)
    for model, batch in ((nn.DataParallel(module, [first, second]), x.to(first)), (alone, x)):
        optimizer = pm.optim.Adam(model.parameters(), lr=1e-3)
        for _ in range(5):
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
    for ours, theirs in zip(module.parameters(), alone.parameters()):
        assert pm.allclose(ours.detach().cpu(), theirs.detach(), rtol=1e-4, atol=1e-5)
    assert settled(second) == (0,)


def test_a_dry_run_foretells_both_peaks():
    def peaks(devices):
        module = network(devices[0])
        parallel = nn.DataParallel(module, devices)
        x = pm.zeros(8, 64, device=devices[0])
        for _ in range(2):
            module.zero_grad()
            parallel(x).sum().backward()
        return [pm.max_memory_allocated(device) for device in devices]

    real = [pm.stand_in(), pm.stand_in()]
    foretold = peaks([pm.dry(device) for device in real])
    assert foretold == peaks(real)
