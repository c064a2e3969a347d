"""Safetensors opened part by part, and whole models in them: the rules of the package `safetensors`."""

import plimsoll
import pytest
from plimsoll import nn, safetensors


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "x.safetensors"
    tensors = {
        "b": plimsoll.arange(6.0).reshape(2, 3),
        "a": plimsoll.arange(4),
        "s": plimsoll.tensor(3.0),
        "h": plimsoll.ones(2, dtype=plimsoll.bfloat16),
        "m": plimsoll.tensor([True, False]),
        "u": plimsoll.tensor([255], dtype=plimsoll.uint8),
    }
    safetensors.save_file(tensors, path, {"epoch": "3"})
    return path


def test_tensors_are_read_one_by_one(path):
    with safetensors.safe_open(path, framework="pt") as file:
        assert file.keys() == ["a", "b", "h", "m", "s", "u"] and file.metadata() == {"epoch": "3"}
        assert file.get_tensor("b").tolist() == [[0, 1, 2], [3, 4, 5]]
        first = file.get_tensor("a")
        first[0] = 9
        assert file.get_tensor("a").tolist() == [0, 1, 2, 3], "each is a copy of its own"
        assert sorted(file.get_tensors()) == file.keys()
        words = {name: file.get_slice(name).get_dtype() for name in file.keys()}
        assert words == {"a": "I64", "b": "F32", "h": "BF16", "m": "BOOL", "s": "F32", "u": "U8"}
        part = file.get_slice("b")
        assert part.get_shape() == [2, 3]
        assert part[0].tolist() == [0, 1, 2] and part[:, 1].tolist() == [1, 4] and part[..., -1].tolist() == [2, 5]
        assert part[1:, ::2].tolist() == [[3, 5]] and part[[1]].tolist() == [[3, 4, 5]] and part[()].shape == (2, 3)
        assert file.get_slice("s")[...].item() == 3.0
        with pytest.raises(IndexError):
            part[5]
        with pytest.raises(safetensors.SafetensorError, match="does not contain tensor z"):
            file.get_tensor("z")
        with pytest.raises(TypeError, match="'name'"):
            file.get_slice(3)
    for ask in (file.keys, file.metadata, lambda: file.get_tensor("a")):
        with pytest.raises(safetensors.SafetensorError, match="File is closed"):
            ask()
    assert part[0].tolist() == [0, 1, 2]


def test_only_what_is_asked_for_takes_memory(tmp_path):
    own = plimsoll.private_cpu()
    path = tmp_path / "x.safetensors"
    safetensors.save_file({"x": plimsoll.zeros(4, 1 << 16), "y": plimsoll.ones(2, 1 << 17)}, path)
    before = plimsoll.memory_allocated("cpu")
    with safetensors.safe_open(path, "pt", device=own) as file:
        assert plimsoll.memory_allocated("cpu") == before and plimsoll.memory_allocated(own) == 0, "it is mapped"
        x = file.get_tensor("x")
        assert x.device == own and plimsoll.memory_allocated(own) == 1 << 20
        row = file.get_slice("y")[1]
        assert plimsoll.memory_allocated(own) == plimsoll.max_memory_allocated(own) == (1 << 20) + (1 << 19)
        assert row.sum().item() == 1 << 17
    del x, row
    assert plimsoll.memory_allocated(own) == 0 and plimsoll.memory_allocated("cpu") == before


def test_what_cannot_be_opened_says_why(path, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        safetensors.safe_open(tmp_path / "nowhere", "pt")
    with pytest.raises(safetensors.SafetensorError, match="framework numpy is invalid"):
        safetensors.safe_open(path, "numpy")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(safetensors.SafetensorError, match="cut short"):
        safetensors.safe_open(path, "pt")


class Tied(nn.Module):
    """One weight under three names, and a bias under two."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)
        self.b = self.a
        self.c = nn.Linear(2, 2)
        self.c.weight = self.a.weight


def test_a_model_whose_weights_are_tied(tmp_path):
    path, given = tmp_path / "tied.safetensors", {"x": "y"}
    model = Tied()
    safetensors.save_model(model, path, given)
    assert given == {"x": "y"}
    with safetensors.safe_open(path, "pt") as file:
        assert file.keys() == ["a.bias", "a.weight", "c.bias"]
        assert file.metadata() == {"x": "y", "b.bias": "a.bias", "b.weight": "a.weight", "c.weight": "a.weight"}
    other = Tied()
    assert safetensors.load_model(other, path) == (set(), [])
    assert all(other.state_dict()[name].equal(tensor) for name, tensor in model.state_dict().items())
    assert other.c.weight is other.a.weight
    # A file that kept another name.
    kept = {"c.weight": model.a.weight.detach(), "b.bias": model.a.bias.detach(), "c.bias": model.c.bias.detach()}
    safetensors.save_file(kept, path)
    assert safetensors.load_model(Tied(), path) == (set(), [])


def test_what_a_model_has_not_is_told(tmp_path):
    path = tmp_path / "tied.safetensors"
    safetensors.save_model(Tied(), path)
    with pytest.raises(RuntimeError) as refused:
        safetensors.load_model(nn.Linear(2, 2), path)
    assert str(refused.value).splitlines() == [
        "Error(s) in loading state_dict for Linear:",
        '    Missing key(s) in state_dict: "bias", "weight"',
        '    Unexpected key(s) in state_dict: "a.bias", "a.weight", "c.bias"',
    ]
    answer = safetensors.load_model(nn.Linear(2, 2), path, strict=False)
    assert answer == ({"bias", "weight"}, ["a.bias", "a.weight", "c.bias"])


def test_parts_of_one_memory(tmp_path):
    path = tmp_path / "parts.safetensors"
    whole = plimsoll.arange(4.0)
    model = nn.Module()
    model.register_buffer("whole", whole)
    model.register_buffer("part", whole[:2])
    safetensors.save_model(model, path)
    with safetensors.safe_open(path, "pt") as file:
        assert file.keys() == ["whole"] and file.metadata() == {"part": "whole"}
    assert safetensors.load_model(model, path) == (set(), [])
    halves = nn.Module()
    halves.register_buffer("low", whole[:2])
    halves.register_buffer("high", whole[2:])
    with pytest.raises(RuntimeError, match="amongst: {'high'}. None is covering the entire storage"):
        safetensors.save_model(halves, path)
    turned = nn.Module()
    turned.weight = nn.Parameter(plimsoll.arange(6.0).reshape(2, 3).t())
    with pytest.raises(ValueError, match="force_contiguous=True"):
        safetensors.save_model(turned, path, force_contiguous=False)
    safetensors.save_model(turned, path)
    assert safetensors.load_file(path)["weight"].tolist() == [[0, 3], [1, 4], [2, 5]]
