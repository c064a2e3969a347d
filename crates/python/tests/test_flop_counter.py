"""Counts of floating point operations by module and operation. All figures are PyTorch's (2.15) for the same programs."""

import plimsoll
import pytest
from plimsoll import nn
from plimsoll.utils.flop_counter import FlopCounterMode

F = nn.functional
ATTENTION = "aten._scaled_dot_product_flash_attention_for_cpu"


def counts(program):
    with FlopCounterMode(display=False) as counter:
        program()
    return counter.get_flop_counts().get("Global", {})


def leaves(*shapes):
    return [plimsoll.randn(shape, requires_grad=True) for shape in shapes]


def test_products():
    a, b = leaves((2, 3, 4), (2, 4, 5))
    assert counts(lambda: plimsoll.bmm(a, b).sum().backward()) == {"aten.bmm": 720}
    grown = {"aten.baddbmm": 240, "aten.bmm": 480}
    assert counts(lambda: plimsoll.baddbmm(plimsoll.ones(2, 3, 5), a, b).sum().backward()) == grown
    assert counts(lambda: (a @ b).sum().backward()) == {"aten.bmm": 720}
    assert counts(lambda: (a @ plimsoll.ones(4, 6, requires_grad=True)).sum().backward()) == {"aten.mm": 864}
    assert counts(lambda: plimsoll.einsum("bij,bjk->bik", a, b)) == {"aten.bmm": 240}
    assert counts(lambda: plimsoll.addmm(plimsoll.ones(3, 5), plimsoll.ones(3, 4), plimsoll.ones(4, 5))) == {"aten.addmm": 120}
    assert counts(lambda: a @ plimsoll.ones(4)) == {} and counts(lambda: a + 1) == {}


CONVOLUTIONS = [
    # forward; backward to input, weight and bias; backward to weight and bias
    (lambda: nn.Conv1d(3, 4, 3), (2, 3, 9), 1008, 2016, 1008),
    (lambda: nn.Conv2d(4, 6, 3, padding=1, groups=2, stride=2), (2, 4, 8, 8), 6912, 20736, 13824),
    (lambda: nn.Conv3d(2, 3, 2), (1, 2, 4, 4, 4), 2592, 5184, 2592),
    (lambda: nn.ConvTranspose2d(3, 4, 3), (2, 3, 8, 8), 27648, 55296, 27648),
]


@pytest.mark.parametrize(("layer", "shape", "forward", "backward", "of_weight"), CONVOLUTIONS)
def test_convolutions(layer, shape, forward, backward, of_weight):
    layer, x = layer(), plimsoll.randn(shape)
    assert counts(lambda: layer(x)) == {"aten.convolution": forward}
    of_both = {"aten.convolution": forward, "aten.convolution_backward": backward}
    assert counts(lambda: layer(x.clone().requires_grad_()).sum().backward()) == of_both
    assert counts(lambda: layer(x).sum().backward())["aten.convolution_backward"] == of_weight


def test_attention():
    q, k, v = leaves((2, 3, 5, 4), (2, 3, 6, 4), (2, 3, 6, 4))
    assert counts(lambda: F.scaled_dot_product_attention(q, k, v)) == {ATTENTION: 2880}
    both = counts(lambda: F.scaled_dot_product_attention(q, k, v).sum().backward())
    assert both == {ATTENTION: 2880, f"{ATTENTION}_backward": 7200}


def deep():
    return nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Sequential(nn.Linear(5, 3, bias=False)))


class Own(nn.Module):
    """A module with an operation of its own between those of others."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.weight = nn.Linear(2, 2), nn.Linear(2, 2), nn.Parameter(plimsoll.ones(2, 2))

    def forward(self, x):
        return self.b(self.a(x) @ self.weight)


def test_modules():
    model = deep()
    with FlopCounterMode(display=False) as counter:
        model(plimsoll.randn(2, 4)).sum().backward()
    assert counter.get_total_flops() == 340
    assert counter.get_flop_counts() == {
        "Global": {"aten.addmm": 80, "aten.mm": 260},
        "Sequential": {"aten.addmm": 80, "aten.mm": 260},
        "Sequential.0": {"aten.addmm": 80, "aten.mm": 80},
        "Sequential.2": {"aten.mm": 180},
        "Sequential.2.0": {"aten.mm": 180},
    }
    own = Own()
    with counter:
        own(plimsoll.randn(3, 2)).sum().backward()
    found = counter.get_flop_counts()
    assert found["Own"] == {"aten.addmm": 48, "aten.mm": 144} and sorted(found) == ["Global", "Own", "Own.a", "Own.b"]
    with counter:
        model(plimsoll.randn(2, 4)), own(plimsoll.randn(3, 2))
    found = counter.get_flop_counts()
    assert found["Sequential"] == {"aten.addmm": 80, "aten.mm": 60} and found["Own"] == {"aten.addmm": 48, "aten.mm": 24}


class Listed(nn.Module):
    """A module that calls those of a list, and not the list."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])

    def forward(self, x):
        return self.layers[1](self.layers[0](x))


class AlsoListed(Listed):
    """Another class with parts of the same names."""


def test_containers_that_are_not_called_count_nothing():
    model = Listed()
    with FlopCounterMode(display=False) as counter:
        model(plimsoll.randn(3, 2)).sum().backward()
    assert sorted(counter.get_flop_counts()) == ["Global", "Listed", "Listed.layers.0", "Listed.layers.1"]


def test_backward_of_parts_of_one_name_is_given_to_no_wrong_class():
    first, second = Listed(), AlsoListed()
    with FlopCounterMode(display=False) as counter:
        second(first(plimsoll.randn(3, 2))).sum().backward()
    counts = counter.get_flop_counts()
    assert counts["Global"] == {"aten.addmm": 96, "aten.mm": 168}
    assert counts["Listed"] == counts["AlsoListed"] == {"aten.addmm": 48}
    long, short = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), nn.Sequential(nn.Linear(2, 2))
    with counter:
        short(long(plimsoll.randn(3, 2))).sum().backward()
    assert counter.get_flop_counts()["Sequential.1"] == {"aten.addmm": 24, "aten.mm": 48}


def test_the_table(capsys):
    model = deep()
    with plimsoll.no_grad(), FlopCounterMode() as counter:
        model(plimsoll.randn(2, 4)) @ plimsoll.randn(3, 6)
    shown = capsys.readouterr().out
    assert shown == counter.get_table(2) + "\n"
    assert shown.splitlines()[:6] == [
        "Module             FLOP    % Total",
        "---------------  ------  ---------",
        "Global              212    100.00%",
        " - aten.addmm        80     37.74%",
        " - aten.mm          132     62.26%",
        " Sequential         140     66.04%",
    ]
    assert "Sequential.0" not in counter.get_table(1) and "Sequential.2.0" in counter.get_table(3)
    with FlopCounterMode(display=False) as counter:
        plimsoll.randn(300, 300) @ plimsoll.randn(300, 300)
    assert counter.get_table().splitlines()[2].split() == ["Global", "54.000M", "100.00%"]
    with FlopCounterMode(display=False) as counter:
        pass
    assert counter.get_table().splitlines()[2].split() == ["Global", "0", "0%"] and counter.get_total_flops() == 0


def test_recurrent_layers_count_nothing():
    layer = nn.GRU(3, 4)
    with FlopCounterMode(display=False) as counter:
        layer(plimsoll.randn(2, 1, 3))[0].sum().backward()
    assert counter.get_total_flops() == 0


def test_what_it_does_not_take():
    with pytest.raises(NotImplementedError, match="custom_mapping"):
        FlopCounterMode(custom_mapping={1: 2})
    with pytest.warns(UserWarning, match="mods argument"):
        FlopCounterMode(nn.Linear(1, 1))
    with plimsoll.profiler.profile(), pytest.raises(ValueError, match="a profiler is running already"):
        FlopCounterMode().__enter__()
    with pytest.raises(RuntimeError, match="cancelled the count"), pytest.warns(UserWarning, match="is cancelled"):
        with FlopCounterMode(), plimsoll.profiler.profile():
            pass
