"""The order of results in memory, which PyTorch keeps where it can: strides are PyTorch 2.15's."""

import plimsoll
import plimsoll.nn.functional as F
import pytest
from plimsoll import tensor

LAST = plimsoll.channels_last
LAST_3D = plimsoll.channels_last_3d


def image(*shape):
    return plimsoll.arange(0.0, float(plimsoll.zeros(*shape).numel())).sin().reshape(*shape)


def last(x):
    return x.to(memory_format=LAST if x.dim() == 4 else LAST_3D)


def check(function, x, keeps=True):
    """The same values as of a row-major input, and the same order as the input's."""
    plain, own = function(x), function(last(x))
    assert near(own, plain)
    assert last(own).stride() == own.stride() if keeps else own.is_contiguous()


def near(a, b):
    return (a.double() - b.double()).abs().max().item() < 1e-6 * (1 + b.double().abs().max().item())


def test_attention_keeps_the_order_of_its_heads():
    x = image(2, 5, 3 * 3 * 4)
    query, key, value = (part.reshape(2, 5, 3, 4).transpose(1, 2) for part in x.split(12, 2))
    turned = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    assert turned.stride() == (60, 4, 12, 1)
    assert turned.transpose(1, 2).view(2, 5, 12).shape == (2, 5, 12)
    plain = [part.contiguous() for part in (query, key, value)]
    assert near(turned, F.scaled_dot_product_attention(*plain, is_causal=True))
    wide = plimsoll.ones(2, 3, 5, 6)
    assert F.scaled_dot_product_attention(query, key, wide).is_contiguous()
    rows = image(2, 3, 4, 5).transpose(2, 3)
    assert F.scaled_dot_product_attention(rows, rows, rows).is_contiguous()


def test_gradients_of_attention_lie_as_their_operands():
    leaves = [image(2, 5, 3, 4).transpose(1, 2).requires_grad_() for _ in range(3)]
    plain = [leaf.detach().contiguous().requires_grad_() for leaf in leaves]
    for tensors in (leaves, plain):
        result = F.scaled_dot_product_attention(*(x * 1 for x in tensors))
        (result * image(2, 3, 5, 4)).sum().backward()
    for own, other in zip(leaves, plain, strict=True):
        assert own.grad.stride() == (60, 4, 12, 1)
        assert near(own.grad, other.grad)


def test_attention_without_width_takes_the_mean():
    nothing = plimsoll.zeros(1, 2, 0)
    value = tensor([[[1.0], [3.0]]])
    assert F.scaled_dot_product_attention(nothing, nothing, value).tolist() == [[[2.0], [2.0]]]


@pytest.mark.parametrize("shape", [(2, 6, 4, 5), (2, 40, 3, 4), (2, 4, 3, 4, 5)])
def test_images_and_volumes_stay_channels_last(shape):
    x = image(*shape)
    space = [1] * (2 * (len(shape) - 2))
    check(lambda x: F.pad(x, space, value=7.0), x)
    check(lambda x: F.pad(x, space, mode="reflect"), x)
    check(lambda x: F.pad(x, space, mode="replicate"), x)
    check(lambda x: F.pad(x, space, mode="circular"), x, keeps=False)
    check(lambda x: F.interpolate(x, scale_factor=2), x)
    check(lambda x: F.interpolate(x, scale_factor=0.5, mode="nearest-exact"), x)
    linear = "bilinear" if len(shape) == 4 else "trilinear"
    check(lambda x: F.interpolate(x, scale_factor=1.7, mode=linear), x)
    check(lambda x: F.interpolate(x, scale_factor=0.6, mode="area"), x, keeps=len(shape) == 4)
    check(lambda x: F.group_norm(x, 2, plimsoll.arange(0.0, shape[1]), plimsoll.ones(shape[1])), x)
    check(lambda x: plimsoll.cat([x, x[:, :1]], 1), x)
    check(lambda x: x.roll(1, 2), x)
    check(lambda x: x.repeat(*([1] * (len(shape) - 1)), 2), x, keeps=False)


def test_images_that_change_their_channels_stay_channels_last():
    x = image(2, 8, 4, 6)
    check(lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"), x)
    check(lambda x: F.pixel_shuffle(x, 2), x)
    check(lambda x: F.pixel_unshuffle(x, 2), x)
    check(lambda x: F.channel_shuffle(x, 2), x)
    for mode in ("nearest", "bilinear", "bicubic"):
        check(lambda x, mode=mode: F.interpolate((x * 100 + 100).to(plimsoll.uint8), scale_factor=2, mode=mode), x)
    stacks = [(384, 192, 1, 48, 8), (384, 8, 1, 96, 16), (384, 1, 192, 48, 8), (384, 1, 96, 48, 8), (384, 48, 12, 2, 1)]
    for dim, strides in enumerate(stacks):
        stacked = plimsoll.stack([last(x), last(x)], dim)
        assert stacked.stride() == strides
        assert stacked.tolist() == plimsoll.stack([x, x], dim).tolist()
    assert plimsoll.cat([last(x), x], 1).is_contiguous()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.pad(x, (1, 2)),
        lambda x: F.pad(x, (1, 1, 2, 1), mode="reflect"),
        lambda x: F.pad(x, (1, 1, 2, 1), mode="replicate"),
        lambda x: F.interpolate(x, scale_factor=2),
        lambda x: F.interpolate(x, scale_factor=1.5, mode="bilinear"),
        lambda x: F.group_norm(x, 3, plimsoll.arange(1.0, 7.0), plimsoll.ones(6)),
    ],
)
def test_gradients_of_images_stay_channels_last(function):
    grads = []
    for order in (lambda x: x, last):
        x = order(image(2, 6, 4, 5)).requires_grad_()
        result = function(x)
        weighted = result * result * order(image(*result.shape))
        grads += plimsoll.autograd.grad(weighted.sum(), x)
    assert near(*grads)
    assert grads[1].stride() == (120, 1, 30, 6)


def test_half_types_are_normalized_channels_last():
    x = image(2, 6, 4, 5).to(plimsoll.bfloat16)
    found = F.group_norm(last(x), 2)
    assert found.stride() == (120, 1, 30, 6)
    assert (found.float() - F.group_norm(x, 2).float()).abs().max().item() < 0.02


def test_what_is_read_by_index_lies_as_it_did():
    x = last(image(2, 3, 4, 5))
    rows, square = tensor([0, 1]), plimsoll.zeros(2, 2, dtype=plimsoll.int64)
    assert x[[0, 1]].stride() == (60, 1, 15, 3)
    assert x[rows, :, rows].stride() == (15, 1, 3)
    assert x[:, :, square].stride() == (60, 1, 6, 3, 12)
    assert x[:, :, square].tolist() == x.contiguous()[:, :, square].tolist()
    y = image(3, 4, 5).permute(2, 0, 1)
    for index, strides in [
        ((rows,), (12, 4, 1)),
        ((slice(None), rows), (1, 5, 10)),
        ((slice(None), slice(None), rows), (2, 10, 1)),
        ((rows, slice(None), rows), (3, 1)),
        ((slice(None), plimsoll.zeros(2, 3, dtype=plimsoll.int64).t()), (1, 5, 15, 30)),
    ]:
        assert y[index].stride() == strides
        assert y[index].tolist() == y.contiguous()[index].tolist()
    assert image(3, 4, 5)[plimsoll.zeros(2, 3, dtype=plimsoll.int64).t()].stride() == (20, 60, 5, 1)


def test_places_that_are_not_zero_lie_by_dimension():
    x = tensor([[1, 0], [2, 3]])
    assert (x.nonzero().stride(), x.nonzero().tolist()) == ((1, 3), [[0, 0], [1, 0], [1, 1]])
    assert [place.stride() for place in x.nonzero(as_tuple=True)] == [(1,), (1,)]
    assert plimsoll.zeros(2, 2).nonzero().shape == (0, 2)
