"""Images and volumes resampled without aliasing: the numbers are PyTorch 2.15's."""

import plimsoll
import plimsoll.nn.functional as F
import pytest

# Of sin(0), sin(1), ... and of 0, 8, ...
WITHOUT_ALIASING = {
    "bilinear": [-0.314066, 0.174556, 0.311328, 0.362511, -0.057008, -0.361617],
    "bicubic": [-0.340611, 0.173443, 0.333169, 0.375944, -0.080847, -0.372475],
}
BYTES_WITHOUT_ALIASING = {
    "bilinear": [[53, 66, 79], [153, 166, 179]],
    "bicubic": [[48, 61, 74], [158, 171, 184]],
}


def image(*shape):
    return plimsoll.arange(0.0, float(plimsoll.zeros(*shape).numel())).sin().reshape(*shape)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_images_shrink_without_aliasing(mode):
    x = image(1, 1, 6, 5)
    found = F.interpolate(x, size=(2, 3), mode=mode, antialias=True)
    wanted = WITHOUT_ALIASING[mode]
    assert [number for row in found[0, 0].tolist() for number in row] == pytest.approx(wanted, abs=1e-5)
    several = image(2, 3, 6, 5)
    last = several.to(memory_format=plimsoll.channels_last)
    plain, found = (F.interpolate(x, size=(2, 3), mode=mode, antialias=True) for x in (several, last))
    assert found.stride() == (18, 1, 9, 3)
    assert (found - plain).abs().max().item() < 1e-6
    leaf = image(1, 1, 6, 5).double().requires_grad_()
    F.interpolate(leaf, size=(2, 3), mode=mode, antialias=True).sum().backward()
    assert leaf.grad.sum().item() == pytest.approx(6)
    assert (leaf.grad != 0).all().item()
    with pytest.raises(ValueError):
        F.interpolate(x, size=2, mode="nearest", antialias=True)


def test_bytes_shrink_without_aliasing():
    x = (plimsoll.arange(30).reshape(1, 1, 6, 5) * 8).to(plimsoll.uint8)
    for mode, wanted in BYTES_WITHOUT_ALIASING.items():
        assert F.interpolate(x, size=(2, 3), mode=mode, antialias=True)[0, 0].tolist() == wanted
