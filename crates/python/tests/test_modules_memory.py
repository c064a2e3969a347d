"""Bytes by module, phase, step and epoch: what modules own and what they compute is booked under their paths."""

import copy

import plimsoll as pm
import plimsoll.nn as nn
import pytest
from plimsoll import optim


@pytest.fixture
def device():
    return pm.private_cpu()


class Block(nn.Module):
    def __init__(self, width, device):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width, device=device) for _ in range(2)])
        self.norm = nn.LayerNorm(width, device=device)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return self.norm(x)


class Net(nn.Module):
    def __init__(self, width, device):
        super().__init__()
        self.block = Block(width, device)
        self.head = nn.Linear(width, 1, device=device)

    def forward(self, x):
        return self.head(self.block(x))


def test_parameters_activations_and_gradients_are_booked_under_their_modules(device):
    net = Net(256, device)
    x = pm.ones(64, 256, device=device)
    assert set(pm.memory_by_module(device)) == {""}
    loss = net(x).sum()
    modules = pm.memory_by_module(device)
    weights = 256 * 256 * 4 + 1024
    activations = 64 * 256 * 4
    # Weights alone: relu, which is the block's own, keeps its result and not what it was given.
    assert modules["block.layers.1"] == weights
    assert modules["block"] == 2 * activations
    assert modules["head"] >= 256 * 4 + 512
    loss.backward()
    modules = pm.memory_by_module(device)
    assert modules["block.layers.0"] >= 2 * weights
    assert sum(modules.values()) == pm.memory_allocated(device)


def test_optimizer_states_are_booked_under_the_modules_of_their_parameters(device):
    net = Net(256, device)
    optimizer = optim.Adam(net.parameters())
    net(pm.ones(4, 256, device=device)).sum().backward()
    before = pm.memory_by_module(device)["block.layers.0"]
    optimizer.step()
    after = pm.memory_by_module(device)["block.layers.0"]
    # Two states for the weight and two for the bias, and two counts of steps.
    assert after - before == 2 * (256 * 256 * 4 + 1024) + 2 * 512


def test_phases_follow_from_what_runs(device):
    net = Net(64, device)
    optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    x = pm.ones(8, 64, device=device)
    y = net(x)
    assert pm.memory_by_phase(device)["forward"] > 0
    y.sum().backward()
    assert pm.memory_by_phase(device)["backward"] > 0
    optimizer.step()
    assert pm.memory_by_phase(device)["optimizer"] > 0
    del y
    with pm.no_grad():
        y = net(x)
    assert pm.memory_by_phase(device)["evaluation"] == 512
    assert sum(pm.memory_by_phase(device).values()) == pm.memory_allocated(device)
    del net, optimizer, y, x
    assert pm.memory_by_phase(device) == {}


def test_a_tree_that_changes_is_named_anew(device):
    net = Net(64, device)
    x = pm.ones(8, 64, device=device)
    net(x)
    net.other = nn.Linear(1, 64, device=device)
    net.block.layers[0] = nn.Linear(64, 64, device=device)
    whole = nn.Sequential(net)
    whole(x)
    modules = pm.memory_by_module(device)
    # It is not called, and is named all the same.
    assert modules["0.other"] == 2 * 512
    assert modules["0.block.layers.0"] == 64 * 64 * 4 + 512
    assert not any(path.startswith("block") for path in modules)
    again = copy.deepcopy(net)
    again(x)
    assert pm.memory_by_module(device)["block.layers.0"] == 64 * 64 * 4 + 512


def test_a_module_that_moves_keeps_its_path(device):
    net = Net(64, device)
    net(pm.ones(2, 64, device=device))
    net.double()
    net(pm.ones(2, 64, device=device, dtype=pm.float64))
    assert pm.memory_by_module(device)["block.layers.0"] == 2 * 64 * 64 * 4 + 512


def test_a_failed_call_leaves_no_path_behind(device):
    net = Net(64, device)
    with pytest.raises(RuntimeError):
        net(pm.ones(2, 3, device=device))
    kept = pm.ones(1024, device=device)
    assert pm.memory_by_module(device)[""] >= 4096
    assert kept.numel() == 1024


def test_hooks_see_the_call_in_the_modules_name(device):
    net = Net(64, device)
    kept = []
    net.head.register_forward_hook(lambda module, args, output: kept.append(pm.ones(1024, device=device)))
    net(pm.ones(2, 64, device=device))
    assert pm.memory_by_module(device)["head"] >= 4096


def test_lines_name_the_module(device):
    net = Net(64, device)
    y = net(pm.ones(2, 64, device=device))
    assert any(row["module"] == "block.norm" for row in pm.memory_by_line(device))
    del y


def test_steps_and_epochs_are_counted(device, tmp_path):
    import json

    first = pm.epoch()
    one = pm.step()
    kept = pm.ones(1024, device=device)
    second = pm.epoch()
    two = pm.step()
    later = pm.ones(1024, device=device)
    assert (second, two) == (first + 1, one + 1)
    path = tmp_path / "snapshot.json"
    pm.dump_snapshot(path, device)
    blocks = [block for segment in json.loads(path.read_text())["segments"] for block in segment["blocks"]]
    marks = {(block["step"], block["epoch"]) for block in blocks if block["state"] == "active_allocated"}
    assert marks == {(one, first), (two, second)}
    del kept, later


def test_out_of_memory_names_modules():
    device = pm.private_cpu()
    net = Net(256, device)
    x = pm.ones(64, 256, device=device)
    net(x)
    pm.set_memory_limit(pm.memory_reserved(device), device)
    with pytest.raises(pm.OutOfMemoryError, match=r"by module +block\.layers\.0 257\.00 KiB"):
        net(pm.ones(1 << 16, 256, device=device))


def test_modules_made_in_a_forward_do_not_have_all_paths_looked_up_again():
    class Made(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)

        def forward(self, x):
            return nn.ReLU()(self.linear(x))

    walks = []

    class Counted(nn.Sequential):
        def named_modules(self, *args, **kwargs):
            walks.append(1)
            return super().named_modules(*args, **kwargs)

    net = Counted(*[Made() for _ in range(5)])
    for _ in range(3):
        loss = nn.CrossEntropyLoss()
        loss(net(pm.ones(1, 2)), pm.tensor([1]))
    assert len(walks) == 1
    net.append(Made())
    net(pm.ones(1, 2))
    assert len(walks) == 2


def test_a_module_at_the_address_of_another_does_not_get_its_path(device):
    kept = []

    class Keeps(nn.Module):
        def forward(self, x):
            kept.append(x + 1)
            return x

    class Holds(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = Keeps()

        def forward(self, x):
            return self._modules["part"](x)

    net, x = Holds(), pm.ones(128, device=device)
    net(x)
    assert pm.memory_by_module(device)["part"] == 512
    # Nobody hears of this; the next module often gets the same address.
    kept.clear()
    del net._modules["part"]
    made = []

    class Other(Keeps):
        pass

    class Makes(nn.Module):
        def forward(self, x):
            made.append(Other())
            return made[-1](x)

    net._modules["part"] = Makes()
    net(x)
    assert "Other" in {path.rpartition(".")[2] for path in pm.memory_by_module(device)}


def test_a_layer_made_in_a_part_does_not_change_the_paths_of_the_others(device):
    kept = []

    class Keeps(nn.Module):
        def forward(self, x):
            kept.append(x + 1)
            return x

    class Part(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Keeps()

        def forward(self, x):
            nn.Linear(1, 1)
            return self.inner(x)

    net = nn.Sequential(Part(), Part())
    net(pm.ones(128, device=device))
    booked = pm.memory_by_module(device)
    assert (booked["0.inner"], booked["1.inner"]) == (512, 512), booked
