"""Memory of a GPU between Plimsoll and PyTorch, both ways. Needs a GPU and PyTorch, and runs without
pytest too: `python test_dlpack_gpu.py`, as on a machine with the GPU bundle."""

import plimsoll as pm

try:
    import pytest
    import torch

    HAS_GPU = torch.cuda.is_available()
except ImportError:
    HAS_GPU = False

try:
    pytestmark = pytest.mark.skipif(not HAS_GPU, reason="there is no GPU, or no PyTorch")
except NameError:
    pass


def test_pytorch_sees_and_writes_our_memory():
    x = pm.zeros((1000, 300), device="cuda:0").add_(2.0)
    assert x.__dlpack_device__() == (2, 0)
    t = torch.from_dlpack(x)
    assert t.is_cuda and t.data_ptr() == x.data_ptr() and t.shape == (1000, 300)
    assert t.sum().item() == 600000.0
    t.mul_(3.0)
    torch.cuda.synchronize()
    assert x.sum().item() == 1800000.0


def test_we_see_and_write_pytorch_memory():
    t = torch.arange(12.0, device="cuda").view(3, 4).t()
    x = pm.from_dlpack(t)
    assert x.shape == (4, 3) and x.data_ptr() == t.data_ptr()
    assert x.tolist() == t.tolist()
    x.add_(1.0)
    pm.synchronize("cuda:0")
    assert t[0, 0].item() == 1.0
    half = pm.from_dlpack(torch.ones(7, dtype=torch.bfloat16, device="cuda")[1:])
    assert half.dtype == pm.bfloat16 and half.tolist() == [1.0] * 6


def test_streams_wait_for_each_other():
    side = torch.cuda.Stream()
    for round in range(20):
        with torch.cuda.stream(side):
            t = torch.zeros(1 << 22, device="cuda")
            for _ in range(20):
                t.add_(1.0)
            # The import asks PyTorch's side stream to be waited for, not the host.
            x = pm.from_dlpack(t)
        y = x.add(float(round))
        with torch.cuda.stream(side):
            back = torch.from_dlpack(y)
            assert back.sum().item() == (20.0 + round) * (1 << 22)


def test_memory_goes_back():
    before = torch.cuda.memory_allocated()
    x = pm.from_dlpack(torch.ones(1 << 20, device="cuda"))
    assert torch.cuda.memory_allocated() - before == 4 << 20
    y = x.add(1.0)
    del x
    assert torch.cuda.memory_allocated() == before
    assert y.sum().item() == 2.0 * (1 << 20)
    held = pm.memory_allocated("cuda:0")
    t = torch.from_dlpack(y)
    del y
    assert pm.memory_allocated("cuda:0") == held
    del t
    assert pm.memory_allocated("cuda:0") == held - (4 << 20)


def test_a_stream_that_is_none_is_refused():
    x = pm.zeros((4,), device="cuda:0")
    for stream in (0, -2):
        try:
            x.__dlpack__(stream=stream)
        except BufferError as error:
            assert "stream" in str(error)
        else:
            raise AssertionError("it was taken")
    assert pm.from_dlpack(x.__dlpack__(stream=-1)).tolist() == [0.0] * 4


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print("ok", name)
