"""Reads what `write_for_pytorch` of `tests/golden.rs` wrote into a folder, by PyTorch and by the safetensors package.

The other direction of `make_golden.py`, for a machine with both: `PLIMSOLL_WRITE_FOR_PYTORCH=FOLDER cargo test -p
plimsoll-files`, then `python read_ours.py FOLDER`.
"""

import pathlib
import sys

import torch
from make_golden import attributed, tensors, training, values
from safetensors.torch import load_file


def same(ours, theirs, where):
    assert type(ours) is type(theirs), (where, type(ours), type(theirs))
    if isinstance(ours, torch.Tensor):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, where
        assert ours.stride() == theirs.stride() and ours.storage_offset() == theirs.storage_offset(), where
        assert ours.requires_grad == theirs.requires_grad, where
        assert torch.equal(ours, theirs) and ours.__dict__ == theirs.__dict__, where
    elif isinstance(ours, dict):
        assert list(ours) == list(theirs), (where, list(ours), list(theirs))
        assert getattr(ours, "_metadata", None) == getattr(theirs, "_metadata", None), where
        for key in ours:
            same(ours[key], theirs[key], f"{where}[{key!r}]")
    elif isinstance(ours, (list, tuple)):
        assert len(ours) == len(theirs), where
        for at, (a, b) in enumerate(zip(ours, theirs)):
            same(a, b, f"{where}[{at}]")
    else:
        assert ours == theirs, (where, ours, theirs)


def main():
    folder = pathlib.Path(sys.argv[1])
    for mmap in [False, True]:
        ours = torch.load(folder / "values.pt", weights_only=True, mmap=mmap)
        same(ours, values(), "values")
        assert ours["base"].untyped_storage().data_ptr() == ours["part"].untyped_storage().data_ptr()
        assert ours["twice"][0] is ours["twice"][1]
    assert torch.load(folder / "devices.pt", weights_only=True) == [torch.device("cpu"), torch.device("cuda", 1)]
    ours = torch.load(folder / "attributed.pt", weights_only=True)
    same(ours, attributed(), "attributed")
    assert ours["noted"] is ours["again"]
    ours = torch.load(folder / "circles.pt", weights_only=True)
    assert ours["list"][1] is ours["list"] and ours["dict"]["itself"] is ours["dict"]
    assert ours["ordered"]["in"][0] is ours["ordered"] and ours["both"][0][0][0] is ours["both"][0]
    model, state = training()
    ours = torch.load(folder / "training.pt", weights_only=True)
    same(ours, state, "training")
    model.load_state_dict(ours["model"])
    torch.optim.AdamW(model.parameters()).load_state_dict(ours["optimizer"])
    checkpoint = torch.load(folder / "checkpoint.pt", weights_only=True)
    assert checkpoint["step"] == 3 and checkpoint["random"] == {"cpu": {"seed": 2**64 - 1, "offset": 5}}, checkpoint
    model.load_state_dict(checkpoint["model"])
    ours = load_file(folder / "tensors.safetensors")
    same(dict(sorted(ours.items())), dict(sorted(tensors().items())), "tensors")
    print("PyTorch", torch.__version__, "reads all of them")


if __name__ == "__main__":
    main()
