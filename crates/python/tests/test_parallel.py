"""`nn.parallel` and `nn.DataParallel` on two devices with books of their own: values, gradients and bytes."""

import copy
import gc
import inspect
from collections import OrderedDict, namedtuple

import plimsoll as pm
import pytest
from plimsoll import nn
from plimsoll.nn.parallel import data_parallel, gather, parallel_apply, replicate, scatter


def two():
    return [pm.private_cpu(), pm.private_cpu()]


def network(device):
    pm.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).to(device)


def gradients(module):
    return [param.grad.tolist() for param in module.parameters()]


def test_scatter_gives_each_device_its_rows():
    first, second = two()
    x = pm.arange(10.0, device=first).reshape(5, 2)
    held = pm.memory_allocated(first)
    a, b = scatter(x, [first, second])
    assert (a.device, b.device) == (first, second)
    assert (a.tolist(), b.tolist()) == (x[:3].tolist(), x[3:].tolist())
    assert pm.memory_allocated(first) == held  # a view
    assert pm.memory_allocated(second) == 512  # 16 bytes, rounded
    # Fewer rows than devices are fewer parts.
    assert [part.tolist() for part in scatter(x[:1], [first, second])] == [[[0.0, 1.0]]]
    assert [tuple(part.shape) for part in scatter(x, [first, second], dim=1)] == [(5, 1), (5, 1)]


def test_scatter_goes_into_collections():
    devices = two()
    Pair = namedtuple("Pair", ["left", "right"])
    x = pm.arange(4.0, device=devices[0])
    given = ([x, "name"], {"x": x, "n": 3}, Pair(x, None), ())
    parts = scatter(given, devices)
    assert len(parts) == 2
    for (values, named, pair, empty), wanted, device in zip(parts, ([0.0, 1.0], [2.0, 3.0]), devices):
        assert values[0].tolist() == named["x"].tolist() == pair.left.tolist() == wanted
        assert values[0].device == device
        assert (values[1], named["n"], pair.right, empty) == ("name", 3, None, ())
        assert isinstance(pair, Pair)


def test_gather_joins_and_its_gradients_go_back():
    first, second = two()
    a = pm.ones(2, 3, device=first, requires_grad=True)
    b = pm.full((1, 3), 2.0, device=second, requires_grad=True)
    before = pm.memory_allocated(first)
    with pm.peak_scope(first) as peak:
        whole = gather([a, b], first)
    # The whole alone: parts go to their places there.
    assert (peak.allocated_bytes, pm.memory_allocated(first)) == (before + 512, before + 512)
    assert whole.tolist() == [[1.0] * 3, [1.0] * 3, [2.0] * 3]
    (whole * pm.arange(9.0, device=first).reshape(3, 3)).sum().backward()
    assert a.grad.device == first and b.grad.device == second
    assert (a.grad.tolist(), b.grad.tolist()) == ([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], [[6.0, 7.0, 8.0]])
    assert gather([a, b], second).device == second
    assert gather([pm.ones(2, 1, device=first), pm.ones(2, 2, device=second)], first, dim=-1).shape == (2, 3)


def test_gather_goes_into_collections():
    first, second = two()
    x, y = pm.ones(1, device=first), pm.zeros(2, device=second)
    values, named, nothing = gather([([x], {"x": x}, None), ([y], {"x": y}, None)], first)
    assert values[0].tolist() == named["x"].tolist() == [1.0, 0.0, 0.0]
    assert nothing is None
    with pytest.raises(ValueError, match="same number of keys"):
        gather([{"x": x}, {"x": y, "y": y}], first)
    with pytest.raises(RuntimeError, match=r"gather: result 1 is \(2, 2\).* and result 0 is \(1,\)"):
        gather([x, pm.zeros(2, 2, device=second)], first)
    with pytest.warns(UserWarning, match="all input tensors were scalars"):
        assert gather([x.sum(), y.sum()], first).tolist() == [1.0, 0.0]


def test_replicas_compute_the_same_and_have_no_parameters():
    first, second = two()
    module = network(first)
    held = pm.memory_allocated(first)
    replicas = replicate(module, [first, second])
    assert pm.memory_allocated(first) == held  # shared
    assert pm.memory_allocated(second) == sum(-(-p.nbytes // 512) * 512 for p in module.parameters())
    x = pm.ones(2, 4, device=first)
    expected = module(x).tolist()
    for replica, device in zip(replicas, [first, second]):
        assert list(replica.parameters()) == []
        assert replica[0].weight.device == device and replica[0].weight.grad_fn is not None
        assert replica(x.to(device)).tolist() == expected
        with pytest.warns(UserWarning, match="has no effect"):
            replica.zero_grad()
    assert len(list(module.parameters())) == 4
    detached = replicate(module, [second], detach=True)[0]
    assert not detached[0].weight.requires_grad
    del replicas, detached, replica
    assert pm.memory_allocated(second) == 0


def test_what_modules_share_replicas_share():
    first, second = two()
    layer = nn.Linear(2, 2).to(first)
    module = nn.Sequential(layer, nn.Linear(2, 2).to(first), layer)
    module[1].weight = layer.weight
    replica = replicate(module, [second])[0]
    assert replica[0] is replica[2]
    assert replica[1].weight is replica[0].weight
    with pytest.raises(RuntimeError, match="uninitialized parameters"):
        replicate(nn.LazyLinear(2), [second])


def test_parallel_apply():
    devices = two()
    modules = [nn.Linear(2, 1).to(device) for device in devices]
    inputs = [pm.ones(3, 2, device=device) for device in devices]
    results = parallel_apply(modules, inputs)
    assert [result.device for result in results] == devices
    assert [result.tolist() for result in results] == [m(x).tolist() for m, x in zip(modules, inputs)]
    with pm.no_grad():
        assert not any(result.requires_grad for result in parallel_apply(modules, inputs))
    with pytest.raises(AssertionError, match="number of modules 2 is not equal to the number of inputs 1"):
        parallel_apply(modules, inputs[:1])
    wrong = [inputs[0], pm.ones(3, 5, device=devices[1])]
    with pytest.raises(RuntimeError, match=f"Caught RuntimeError in replica 1 on device {devices[1]}"):
        parallel_apply(modules, wrong)
    with pytest.raises(RuntimeError, match="device cannot be resolved"):
        parallel_apply([nn.Identity()], [(1,)])


def test_gradients_arrive_at_the_modules_own_parameters():
    first, second = two()
    module = network(first)
    alone = copy.deepcopy(module)
    parallel = nn.DataParallel(module, [first, second])
    assert list(parallel.state_dict()) == ["module." + key for key in alone.state_dict()]
    x = pm.randn(6, 4).to(first)
    y = parallel(x)
    assert y.device == first
    assert pm.allclose(y.cpu(), alone(x).cpu())
    y.square().sum().backward()
    alone(x).square().sum().backward()
    for ours, theirs in zip(module.parameters(), alone.parameters()):
        assert ours.grad.device == first
        assert pm.allclose(ours.grad.cpu(), theirs.grad.cpu(), rtol=1e-5, atol=1e-6)
    # The other device has nothing left: copies live for one forward and its backward.
    del y
    assert pm.memory_allocated(second) == 0
    kinds = pm.memory_by_kind(first)
    assert kinds["gradient"] >= sum(p.nbytes for p in module.parameters())


def test_bytes_of_every_device_have_the_callers_line():
    first, second = two()
    parallel = nn.DataParallel(network(first), [first, second])
    x = pm.randn(6, 4).to(first)
    y = parallel(x)
    line = inspect.currentframe().f_lineno - 1
    rows = pm.memory_by_line(second)
    assert {row["operation"] for row in rows} >= {"to", "tanh"}
    assert {(row["file"], row["line"]) for row in rows} == {(__file__, line)}
    del y


def test_modes_of_the_caller_hold_on_every_device():
    devices = two()
    seen = []

    class Sees(nn.Module):
        def forward(self, x):
            seen.append((x.device, pm.is_grad_enabled(), pm.is_inference_mode_enabled(), (x @ x.t()).dtype))
            return x

    parallel = nn.DataParallel(Sees(), devices)
    x = pm.ones(4, 2, device=devices[0])
    with pm.inference_mode(), pm.autocast("cpu", pm.bfloat16):
        parallel(x)
    assert seen == [(device, False, True, pm.bfloat16) for device in devices]


def test_a_step_trains_as_on_one_device():
    first, second = two()
    module = network(first)
    alone = copy.deepcopy(module)
    x = pm.randn(8, 4).to(first)
    target = x[:, :2] * 2.0
    for model in (nn.DataParallel(module, [first, second]), alone):
        optimizer = pm.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(10):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), target).backward()
            optimizer.step()
    for ours, theirs in zip(module.parameters(), alone.parameters()):
        assert pm.allclose(ours.detach().cpu(), theirs.detach().cpu(), rtol=1e-4, atol=1e-5)


def test_running_means_are_those_of_the_first_device():
    first, second = two()
    module = nn.BatchNorm1d(1).to(first)
    parallel = nn.DataParallel(module, [first, second])
    parallel(pm.tensor([[0.0], [2.0], [10.0], [20.0]]).to(first))
    assert module.running_mean.tolist() == pytest.approx([0.1])  # a tenth of the mean of 0 and 2
    assert module.num_batches_tracked.item() == 1
    parallel.eval()
    assert not any(m.training for m in replicate(parallel.module, [second]))


def test_arguments_by_name_and_by_none():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(pm.tensor([3.0]))

        def forward(self, x=None, *, scale=None):
            x = pm.ones(1, device=self.w.device) if x is None else x
            return {"y": x * self.w if scale is None else x * self.w * scale}

    first, second = two()
    parallel = nn.DataParallel(Scaled().to(first), [first, second], output_device=second)
    x = pm.arange(4.0, device=first)
    result = parallel(x, scale=x)["y"]
    assert (result.tolist(), result.device) == ([0.0, 3.0, 12.0, 27.0], second)
    assert parallel(scale=x)["y"].tolist() == [0.0, 3.0, 6.0, 9.0]
    assert parallel()["y"].tolist() == [3.0]
    assert parallel(x[:1])["y"].tolist() == [0.0]


def test_one_device_and_none_pass_through():
    (device,) = two()[:1]
    module = nn.Linear(2, 2)
    one = nn.DataParallel(module, [device])
    assert module.weight.device == device
    before = pm.memory_allocated(device)
    x = pm.ones(1, 2)
    assert one(x).device == device
    assert pm.memory_allocated(device) == before
    none = nn.DataParallel(nn.Linear(2, 2), [])
    assert none.device_ids == []
    assert none(x).tolist() == none.module(x).tolist()
    assert list(none.state_dict()) == ["module.weight", "module.bias"]
    with pytest.raises(RuntimeError, match="no available devices"):
        data_parallel(module, x, [])


def test_without_a_module_around():
    first, second = two()
    module = network(first)
    x = pm.randn(5, 4).to(first)
    y = data_parallel(module, x, [first, second], output_device=second)
    assert y.device == second
    assert pm.allclose(y.cpu(), module(x).cpu())
    with pm.no_grad():
        assert not data_parallel(module, x, [first, second]).requires_grad


def test_a_module_elsewhere_is_refused():
    first, second = two()
    parallel = nn.DataParallel(nn.Linear(2, 2).to(second), [first, second])
    with pytest.raises(RuntimeError, match=rf"on device {first} \(device_ids\[0\]\) but found one .* {second}.*module.to"):
        parallel(pm.ones(2, 2, device=first))
    with pytest.raises(TypeError, match="is not a device"):
        nn.DataParallel(nn.Linear(2, 2), [1.5])


def test_recurrent_layers_and_lists_of_parameters():
    class Listed(nn.Module):
        def __init__(self):
            super().__init__()
            self.scales = nn.ParameterList([pm.ones(3), pm.full((3,), 2.0)])
            self.lstm = nn.LSTM(3, 4, batch_first=True)

        def forward(self, x):
            return self.lstm(x * self.scales[0] * self.scales[1])[0]

    first, second = two()
    module = Listed().to(first)
    alone = copy.deepcopy(module)
    x = pm.randn(4, 5, 3).to(first)
    y = nn.DataParallel(module, [first, second])(x)
    assert pm.allclose(y.cpu(), alone(x).cpu(), atol=1e-6)
    y.sum().backward()
    alone(x).sum().backward()
    for ours, theirs in zip(module.parameters(), alone.parameters()):
        assert pm.allclose(ours.grad.cpu(), theirs.grad.cpu(), rtol=1e-4, atol=1e-5)


def test_everything_is_given_back():
    first, second = two()
    parallel = nn.DataParallel(network(first), [first, second])
    parallel(pm.randn(4, 4).to(first)).sum().backward()
    del parallel
    gc.collect()
    assert (pm.memory_allocated(first), pm.memory_allocated(second)) == (0, 0)


def test_checking_devices():
    from plimsoll.nn.utils import check_device_consistency

    first, second = two()
    model = nn.Sequential(OrderedDict(layer=nn.Linear(2, 2), norm=nn.BatchNorm1d(2)))
    x = pm.ones(3, 2)
    assert check_device_consistency(model, x, {"target": [x, 1]}) == pm.device("cpu")
    assert check_device_consistency(nn.ReLU()) is None
    model.to(first)
    model.norm.to(second)
    with pytest.raises(RuntimeError) as caught:
        check_device_consistency(model, x.to(first), {"target": x})
    told = str(caught.value)
    assert "are on 3 devices" in told
    for name, device in [
        ("parameter layer.weight", first), ("parameter layer.bias", first), ("parameter norm.weight", second),
        ("parameter norm.bias", second), ("buffer norm.running_mean", second), ("buffer norm.running_var", second),
        ("buffer norm.num_batches_tracked", second), ("argument 0", first), ("argument 1['target']", pm.device("cpu")),
    ]:  # fmt: skip
        (line,) = [line for line in told.splitlines() if line.startswith(f"  {name} ")]
        assert line.split()[-1] == str(device)
    assert "model.to(device)" in told and "x = x.to(device)" in told
    with pytest.raises(TypeError, match="argument 0 is object"):
        check_device_consistency(model, object())


def test_a_module_moves_with_its_gradients_and_buffers():
    device = pm.private_cpu()
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    model(pm.ones(3, 2)).sum().backward()
    weight = model[0].weight
    assert model.to(device) is model
    assert model[0].weight is weight  # the same parameter, elsewhere
    assert {t.device for t in (weight, weight.grad, model[1].running_mean, model[1].num_batches_tracked)} == {device}
    assert model.to(pm.float64)[1].num_batches_tracked.dtype == pm.int64  # only floats are cast
    assert model.cpu() is model and weight.device == weight.grad.device == pm.device("cpu")
    assert pm.memory_allocated(device) == 0
    with pytest.raises(TypeError, match="only accepts floating point"):
        model.to(pm.int32)


def test_a_module_goes_to_a_gpu_or_says_why_not():
    model = nn.Linear(2, 2)
    if not pm.cuda.is_available():
        with pytest.raises(RuntimeError, match="(?i)cuda"):
            model.cuda()
        assert model.weight.device == pm.device("cpu")
        # All GPUs are none: it passes through.
        assert nn.DataParallel(model).device_ids == []
        assert nn.DataParallel(model)(pm.ones(1, 2)).tolist() == model(pm.ones(1, 2)).tolist()
    else:
        assert model.cuda() is model and model.cuda(0).weight.device == pm.device("cuda:0")


def test_a_dry_run_foretells_both_peaks():
    real = two()

    def peaks(devices):
        module = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 8)).to(devices[0])
        parallel = nn.DataParallel(module, devices)
        x = pm.zeros(32, 64, device=devices[0])
        for _ in range(2):
            module.zero_grad()
            parallel(x).sum().backward()
        return [(pm.max_memory_allocated(device), pm.memory_allocated(device)) for device in devices]

    assert peaks([pm.dry(device) for device in real]) == peaks(real)


@pytest.mark.skipif(pm.cuda.is_available(), reason="there is a GPU")
def test_gpus_that_are_not_there_are_passed_over():
    for devices in ([0], ["cuda:0", 1]):
        parallel = nn.DataParallel(nn.Linear(2, 2), device_ids=devices)
        assert parallel.device_ids == [] and parallel(pm.ones(1, 2)).shape == (1, 2)
