"""Padded positions of `nn.TransformerEncoder`: 0 exactly where PyTorch 2.15 takes nested tensors, computed elsewhere."""

import contextlib
import warnings

import plimsoll as pm
import pytest
from plimsoll import nn

RIGHT = [[False, False, True], [False, False, False], [True, True, True]]
LEFT = [[True, False, False], [False, False, False], [False, False, True]]
X = pm.arange(36.0).reshape(3, 3, 4).sin()


def encoder(heads=2, norm=None, enable_nested_tensor=True, **options):
    pm.manual_seed(0)
    layer = nn.TransformerEncoderLayer(4, heads, 8, **{"dropout": 0.0, "batch_first": True, **options})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="enable_nested_tensor is True")
        return nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor).eval()


def is_zero(output, padding):
    """Whether all that is padded is 0; what is not padded never is."""
    padding = pm.tensor(padding)
    assert not (output[~padding] == 0).any()
    return bool((output[padding] == 0).all())


@pytest.mark.parametrize("as_float", [False, True])
def test_padding_on_the_right_comes_out_as_0(as_float):
    padding = pm.tensor(RIGHT)
    mask = pm.zeros(3, 3).masked_fill(padding, float("-inf")) if as_float else padding
    with pm.no_grad():
        output = encoder()(X, src_key_padding_mask=mask)
        computed = encoder(enable_nested_tensor=False)(X, src_key_padding_mask=mask)
    assert is_zero(output, RIGHT) and not is_zero(computed, RIGHT)
    assert output[~padding].tolist() == computed[~padding].tolist()


def test_the_last_norm_sees_the_zeros():
    norm = nn.LayerNorm(4)
    nn.init.constant_(norm.bias, 3.0)
    with pm.no_grad():
        output = encoder(norm=norm)(X, src_key_padding_mask=pm.tensor(RIGHT))
    assert output[2].tolist() == [[3.0] * 4] * 3


def test_gradients_training_and_other_masks_leave_it_computed():
    padding = pm.tensor(RIGHT[:2])
    x = X[:2]
    assert not is_zero(encoder()(x, src_key_padding_mask=padding), RIGHT[:2])
    with pm.no_grad():
        assert not is_zero(encoder().train()(x, src_key_padding_mask=padding), RIGHT[:2])
        both = encoder()(x, pm.zeros(3, 3, dtype=pm.bool), padding)
        assert not is_zero(both, RIGHT[:2])
        assert not is_zero(encoder()(X, src_key_padding_mask=pm.tensor(LEFT)), LEFT)
    frozen = encoder().requires_grad_(False)
    assert is_zero(frozen(x, src_key_padding_mask=padding), RIGHT[:2])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"norm_first": True}, "encoder_layer.norm_first was True"),
        ({"batch_first": False}, "encoder_layer.self_attn.batch_first was not True"),
        ({"bias": False}, "encoder_layer.self_attn was passed bias=False"),
        ({"activation": pm.tanh}, "encoder_layer.activation_relu_or_gelu was not True"),
        ({"heads": 1}, "encoder_layer.self_attn.num_heads is odd"),
        ({"activation": "gelu"}, None),
        ({"activation": nn.GELU()}, None),
    ],
)
def test_layers_that_pytorch_makes_no_nested_tensors_for(options, words):
    layer = nn.TransformerEncoderLayer(4, options.get("heads", 2), 8, **{"batch_first": True, **without(options, "heads")})
    told = contextlib.nullcontext() if words is None else pytest.warns(UserWarning, match=words)
    with told:
        assert nn.TransformerEncoder(layer, 1).use_nested_tensor == (words is None)
    if options.get("batch_first", True):
        with pm.no_grad():
            output = encoder(**options)(X[:2], src_key_padding_mask=pm.tensor(RIGHT[:2]))
        assert is_zero(output, RIGHT[:2]) == (words is None)


def without(options, name):
    return {key: value for key, value in options.items() if key != name}
