"""Names where PyTorch's files have them, which other people's layers import."""

import importlib

import plimsoll as pm
import pytest
from plimsoll import nn


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("activation", "MultiheadAttention ReLU"),
        ("batchnorm", "LazyBatchNorm2d _BatchNorm _NormBase"),
        ("channelshuffle", "ChannelShuffle"),
        ("container", "ModuleList ParameterDict ParameterList"),
        ("conv", "LazyConv2d _ConvNd"),
        ("flatten", "Flatten Unflatten"),
        ("fold", "Fold Unfold"),
        ("instancenorm", "LazyInstanceNorm1d"),
        ("linear", "LazyLinear Linear"),
        ("loss", "CosineEmbeddingLoss TripletMarginLoss _Loss"),
        ("module", "_IncompatibleKeys _global_forward_hooks"),
        ("pixelshuffle", "PixelShuffle PixelUnshuffle"),
        ("pooling", "AdaptiveAvgPool2d FractionalMaxPool3d MaxPool2d _AdaptiveAvgPoolNd"),
        ("rnn", "LSTM LSTMCell RNNCellBase"),
        ("transformer", "TransformerEncoderLayer _get_activation_fn _get_clones"),
    ],
)
def test_names_of_files(file, names):
    module = importlib.import_module(f"plimsoll.nn.modules.{file}")
    assert getattr(nn.modules, file) is module
    for name in names.split():
        found = getattr(module, name)
        assert getattr(nn, name, found) is found
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        module.nothing_of_this_name


def test_small_functions_of_sizes_and_states():
    from plimsoll.nn.common_types import _size_2_t
    from plimsoll.nn.modules.utils import _ntuple, _pair, _reverse_repeat_tuple, _single, _triple

    assert (_single(1), _pair(2), _triple((1, 2, 3)), _ntuple(4)(5)) == ((1,), (2, 2), (1, 2, 3), (5, 5, 5, 5))
    assert _reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
    assert _size_2_t == int | tuple[int, int]
    assert nn.modules.utils._list_with_default([None, 7], [3, 4, 5]) == [4, 7]
    wrapped = nn.DataParallel(nn.Linear(1, 1))
    state = wrapped.state_dict()
    nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == ["weight", "bias"] and state._metadata[""]["version"] == 1
    nn.Linear(1, 1).load_state_dict(state)


def test_arguments_of_to():
    layer = nn.Linear(1, 1)
    assert layer.to("cpu", pm.float64, True).weight.dtype == layer.to(pm.float64, True).weight.dtype == pm.float64
    for refused in (("cpu", True), (None, True), ("cpu", pm.float32, True, 1), (pm.ones(1), pm.float32), (True,), ([],)):
        with pytest.raises(TypeError):
            layer.to(*refused)
    with pytest.raises(RuntimeError, match="does not accept copy"):
        layer.to("cpu", copy=True)


def test_the_order_of_a_dict_of_parameters():
    one = pm.ones(1)
    assert list(nn.ParameterDict({"b": one, "a": one})) == ["a", "b"]
    assert list(nn.ParameterDict([("b", one), ("a", one)])) == ["b", "a"]
    assert list(nn.ParameterDict({}).fromkeys(["c", "a"], one)) == ["c", "a"]


def test_a_parameter_of_a_class_is_not_one_without_shape():
    kind = type("Kind", (pm.Tensor,), {})
    made = nn.Parameter(pm.ones(1).as_subclass(kind))
    assert isinstance(made, nn.Parameter) and not isinstance(made, nn.UninitializedParameter)


def test_writes_of_a_function_that_is_applied_count():
    layer = nn.Linear(2, 1)
    product, before = layer.weight.mul(layer.weight), layer.weight._version
    layer._apply(lambda tensor: tensor.add_(1.0))
    assert layer.weight._version > before
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward(pm.ones(1, 2))


def test_an_extra_state_needs_both_methods():
    getter = type("Getter", (nn.Module,), {"get_extra_state": lambda self: {"a": 5}})()
    with pytest.raises(RuntimeError, match="Unexpected key"):
        getter.load_state_dict(getter.state_dict())
    setter = type("Setter", (nn.Module,), {"set_extra_state": lambda self, state: None})()
    with pytest.raises(RuntimeError, match="Missing key"):
        setter.load_state_dict(setter.state_dict())


def test_attention_of_nothing():
    assert nn.MultiheadAttention(8, 2)(*[pm.ones(3, 0, 8)] * 3)[0].shape == (3, 0, 8)
    layer = nn.TransformerEncoderLayer(8, 2, 4, batch_first=True)
    assert layer(pm.ones(0, 3, 8)).shape == layer.eval()(pm.ones(0, 3, 8)).shape == (0, 3, 8)


def test_instances_without_a_least_variance():
    x = pm.arange(8.0).reshape(1, 2, 4)
    expected = [-1.3416407, -0.4472136, 0.4472136, 1.3416407]
    assert nn.InstanceNorm1d(2, eps=0)(x)[0, 1].tolist() == pytest.approx(expected)
    with pytest.raises(ValueError, match="eps must be positive"):
        nn.functional.batch_norm(x[0], None, None, training=True, eps=0)


def test_sizes_are_whole():
    with pytest.raises(TypeError, match="expected size to be one of int"):
        nn.functional.interpolate(pm.ones(1, 1, 2), size=[4.5])


def test_the_gradient_by_its_other_name():
    p = nn.Parameter(pm.ones(2))
    p._grad = pm.full((2,), 3.0)
    assert p.grad.tolist() == [3.0, 3.0] and p._grad is p.grad
    assert nn.utils.clip_grad_norm_([p], 1.0).item() == pytest.approx(18**0.5)


def test_first_values_in_halves_are_not_cut():
    for dtype, distinct in ((pm.float16, 3000), (pm.bfloat16, 1000)):
        drawn = nn.init.trunc_normal_(pm.empty(50000, dtype=dtype))
        assert len(drawn.unique()) > distinct
        assert not (nn.init.trunc_normal_(pm.empty(50000, dtype=dtype), std=0.02).abs() >= 2).any()
