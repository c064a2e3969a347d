"""Steps inside backward, by post-accumulate hooks: the gradients of a model never live together, in bytes."""

import plimsoll
import pytest
from plimsoll import nn, optim

WIDTH, LAYERS = 128, 4
WEIGHT = WIDTH * WIDTH * 4


def made(device):
    plimsoll.manual_seed(3)
    layers = [nn.Linear(WIDTH, WIDTH, bias=False, device=device) for _ in range(LAYERS)]
    return nn.Sequential(*layers), plimsoll.randn(2, WIDTH).to(device)


def peak_of_backward(model, x, device, after):
    """Bytes above what lives before backward, at most."""
    loss = model(x).square().sum()
    before = plimsoll.memory_allocated(device)
    plimsoll.reset_peak_memory_stats(device)
    loss.backward()
    after()
    return plimsoll.max_memory_allocated(device) - before


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_the_peak_is_lower_by_the_gradients(name):
    device = plimsoll.private_cpu()
    options = {"lr": 0.01}
    plain, x = made(device)
    optimizer = getattr(optim, name)(plain.parameters(), **options)
    inside, _ = made(device)
    optimizers = {param: getattr(optim, name)([param], **options) for param in inside.parameters()}

    def step(param):
        optimizers[param].step()
        optimizers[param].zero_grad()

    for param in inside.parameters():
        param.register_post_accumulate_grad_hook(step)
    for _ in range(3):
        together = peak_of_backward(plain, x, device, optimizer.step)
        optimizer.zero_grad()
        one_by_one = peak_of_backward(inside, x, device, lambda: None)
        assert all(param.grad is None for param in inside.parameters())
        for one, other in zip(plain.parameters(), inside.parameters(), strict=True):
            assert plimsoll.allclose(one, other)
    # After the first step nothing but gradients and a few rows comes and goes.
    small = 16 * 1024
    assert abs(together - LAYERS * WEIGHT) < small
    assert abs(one_by_one - WEIGHT) < small
    assert together - one_by_one > (LAYERS - 1) * WEIGHT - small
