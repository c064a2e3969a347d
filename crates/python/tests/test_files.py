"""`save`, `load` and `safetensors`: PyTorch's files are read, and what is written comes back as it was."""

import collections
import io
import os
import pathlib
import pickle
import zipfile
from fractions import Fraction

import plimsoll
import pytest
from plimsoll import nn, safetensors

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "files" / "tests" / "golden"


def back(value, **options):
    buffer = io.BytesIO()
    plimsoll.save(value, buffer)
    buffer.seek(0)
    return plimsoll.load(buffer, **options)


def check(values):
    assert {name: tensor.tolist() for name, tensor in values["dtypes"].items()} == {
        name: [False, True, True] if name == "bool" else [0, 1, 1] for name in values["dtypes"]
    }
    assert all(tensor.dtype is getattr(plimsoll, name) for name, tensor in values["dtypes"].items())
    base = values["base"]
    assert base.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert values["transposed"].stride() == (1, 4) and values["part"].storage_offset() == 5
    base[1, 1] = 50
    assert values["part"][0, 0].item() == values["transposed"][1, 1].item() == 50, "one storage"
    base[1, 1] = 5
    assert values["expanded"].stride() == (0, 0) and values["expanded"].shape == (2, 3)
    assert values["scalar"].item() == 2.5 and values["empty"].shape == (0, 3)
    assert values["leaf"].requires_grad and values["leaf"].is_leaf
    assert type(values["parameter"]) is nn.Parameter and values["parameter"].requires_grad
    assert type(values["frozen"]) is nn.Parameter and not values["frozen"].requires_grad
    assert values["twice"][0] is values["twice"][1]
    assert values["plain"] == [
        *[None, True, False, 0, 255, 256, 65536, -1, 2**31, -(2**63), 2**64 - 1, 2**70],
        *[0.1, "", "gr\u00fc\u00df", b"\x00\xff", ()],
    ]
    assert values["nested"] == {1: [(2, {"three": [[]]})], ("a", 1): {"set": {7}}}
    assert type(values["ordered"]) is collections.OrderedDict and list(values["ordered"]) == ["b", "a"]
    assert values["size"] == (3, 4) and values["dtype"] is plimsoll.bfloat16


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("name", ["values.pt", "protocol4.pt"])
def test_values_of_pytorch(name, mmap):
    read = plimsoll.load(GOLDEN / name, mmap=mmap)
    check(read)
    check(back(read))


@pytest.mark.parametrize("mmap", [False, True])
def test_what_was_trained_in_pytorch(mmap):
    read = plimsoll.load(GOLDEN / "training.pt", mmap=mmap)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    assert str(model.load_state_dict(read["model"])) == "<All keys matched successfully>"
    assert read["model"]._metadata["1"] == {"version": 2}
    optimizer = plimsoll.optim.AdamW(model.parameters())
    optimizer.load_state_dict(read["optimizer"])
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.001)
    assert read["step"] == 3 and read["optimizer"]["state"][0]["step"].item() == 3
    again = back(read)
    assert again["model"]._metadata == read["model"]._metadata
    assert all(again["model"][key].equal(read["model"][key]) for key in read["model"])


def values():
    base = plimsoll.arange(12, dtype=plimsoll.float32).reshape(3, 4)
    twice = plimsoll.tensor([1.0, 2.0])
    names = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
    return {
        "dtypes": {name: plimsoll.tensor([0, 1, 1]).to(getattr(plimsoll, name)) for name in names},
        "base": base,
        "transposed": base.t(),
        "part": base[1:, 1:3],
        "expanded": plimsoll.tensor([5.0]).expand(2, 3),
        "scalar": plimsoll.tensor(2.5, dtype=plimsoll.float64),
        "empty": plimsoll.empty(0, 3),
        "leaf": plimsoll.ones(2, requires_grad=True),
        "parameter": nn.Parameter(plimsoll.full((2, 2), 3.0)),
        "frozen": nn.Parameter(plimsoll.zeros(1), requires_grad=False),
        "twice": [twice, twice],
        "plain": [
            *[None, True, False, 0, 255, 256, 65536, -1, 2**31, -(2**63), 2**64 - 1, 2**70],
            *[0.1, "", "gr\u00fc\u00df", b"\x00\xff", ()],
        ],
        "nested": {1: [(2, {"three": [[]]})], ("a", 1): {"set": {7}}},
        "ordered": collections.OrderedDict(b=1, a=2),
        "size": base.shape,
        "dtype": plimsoll.bfloat16,
        "device": plimsoll.device("cpu"),
    }


def test_values_come_back(tmp_path):
    read = back(values())
    check(read)
    assert read["device"] == plimsoll.device("cpu")
    plimsoll.save(values(), tmp_path / "values.pt")
    check(plimsoll.load(str(tmp_path / "values.pt")))
    check(plimsoll.load(tmp_path / "values.pt", mmap=True, weights_only=False))
    assert os.listdir(tmp_path) == ["values.pt"]


def test_what_only_code_could_make_is_refused(tmp_path):
    marker = pathlib.Path("/tmp/plimsoll-was-here")
    marker.unlink(missing_ok=True)
    for name, named in [("class.pt", "__main__.Own"), ("command.pt", "posix.system")]:
        for weights_only in [True, False]:
            with pytest.raises(pickle.UnpicklingError, match=f"GLOBAL {named}"):
                plimsoll.load(GOLDEN / name, weights_only=weights_only)
    assert not marker.exists()
    with pytest.raises(RuntimeError, match="legacy format"):
        plimsoll.load(GOLDEN / "legacy.pt")
    with pytest.raises(pickle.UnpicklingError, match="ComplexFloatStorage"):
        plimsoll.load(GOLDEN / "complex.pt")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        plimsoll.load(tmp_path / "nowhere.pt")
    with pytest.raises(RuntimeError, match="is a directory"):
        plimsoll.save({}, tmp_path)
    cut = (GOLDEN / "training.pt").read_bytes()[:-30]
    with pytest.raises(RuntimeError, match="cut short"):
        plimsoll.load(io.BytesIO(cut))


class Own(dict):
    pass


def test_what_cannot_be_saved_keeps_the_old_file(tmp_path):
    path = tmp_path / "state.pt"
    plimsoll.save({"step": 1}, path)
    holds_itself = ([],)
    holds_itself[0].append(holds_itself)
    for value, says in [
        (Own(), "Own"),
        (object(), "object"),
        (nn.Linear(2, 2), "Linear"),
        (collections.defaultdict(list), "defaultdict"),
        (holds_itself, "holds itself"),
        (2**200, "128 bits"),
        ({"f": print}, "builtin_function_or_method"),
    ]:
        with pytest.raises(pickle.PicklingError, match=says):
            plimsoll.save(value, path)
    x = plimsoll.zeros(2)
    with pytest.raises(TypeError, match="different types"):
        plimsoll.save([x, x.view(plimsoll.int32)], path)
    assert plimsoll.load(path) == {"step": 1}
    assert os.listdir(tmp_path) == ["state.pt"]


def test_map_location(tmp_path):
    own = plimsoll.private_cpu()
    path = tmp_path / "x.pt"
    plimsoll.save([plimsoll.ones(3)], path)
    for location in [own, {"cpu": own}]:
        assert plimsoll.load(path, map_location=location)[0].device == own
    seen = []

    def asked(storage, location):
        seen.append((storage.device, location))
        return storage

    assert plimsoll.load(path, asked)[0].device == plimsoll.device("cpu")
    assert plimsoll.load(path, lambda storage, location: None)[0].tolist() == [1, 1, 1]
    assert seen == [(plimsoll.device("cpu"), "cpu")]
    with pytest.raises(ZeroDivisionError):
        plimsoll.load(path, lambda storage, location: 1 / 0)
    with pytest.raises(TypeError):
        plimsoll.load(path, 3)
    with pytest.raises(ValueError, match="mmap"):
        plimsoll.load(io.BytesIO(path.read_bytes()), mmap=True)


def test_memory_of_a_load(tmp_path):
    own = plimsoll.private_cpu()
    path = tmp_path / "x.pt"
    x = plimsoll.ones(1 << 18)
    plimsoll.save([x[:10], x[10:]], path)
    read = plimsoll.load(path, map_location=own)
    assert plimsoll.memory_allocated(own) == plimsoll.max_memory_allocated(own) == 1 << 20
    read = plimsoll.load(path, map_location=own, mmap=True)
    assert plimsoll.memory_allocated(own) == 0
    read[0].zero_()
    assert plimsoll.load(path)[0].sum().item() == 10, "the file stays as it is"


def test_safetensors(tmp_path):
    read = safetensors.load_file(GOLDEN / "tensors.safetensors")
    assert read["weight"].tolist() == [[0, 1, 2], [3, 4, 5]] and read["mask"].tolist() == [True, False, True]
    assert read["brain"].dtype is plimsoll.bfloat16 and read["step"].item() == 7
    safetensors.save_file(read, tmp_path / "x.safetensors", metadata={"format": "pt"})
    again = safetensors.load_file(str(tmp_path / "x.safetensors"), device="cpu")
    assert {name: tensor.tolist() for name, tensor in again.items()} == {n: t.tolist() for n, t in read.items()}
    assert safetensors.load(safetensors.save(read, {"epoch": "3"}))["half"].tolist() == [1.5, -2.0]
    with pytest.raises(RuntimeError, match="share memory"):
        safetensors.save({"a": read["weight"], "b": read["weight"]})
    with pytest.raises(ValueError, match="non contiguous tensor: `a`"):
        safetensors.save({"a": read["weight"].t()})
    with pytest.raises(ValueError, match="Key `a`"):
        safetensors.save({"a": 3})
    with pytest.raises(ValueError, match="cut short"):
        safetensors.load(safetensors.save(read)[:-1])


def test_the_milestones_of_a_schedule_are_saved_too(tmp_path):
    weight = nn.Parameter(plimsoll.zeros(1))
    schedule = plimsoll.optim.lr_scheduler.MultiStepLR(plimsoll.optim.SGD([weight], lr=0.1), [2, 5, 5])
    read = back({"schedule": schedule.state_dict()})["schedule"]
    assert read == schedule.state_dict()
    assert type(read["milestones"]) is collections.Counter and read["milestones"] == {2: 1, 5: 2}
    assert back(collections.Counter()) == collections.Counter()


def test_a_container_in_several_places_is_one_after_loading(tmp_path):
    shared, table = [1, 2], {"a": plimsoll.ones(1)}
    pair = (shared, table)
    plimsoll.save({"first": shared, "second": [shared, pair], "third": pair, "apart": [1, 2], "empty": [(), ()]}, tmp_path / "x.pt")
    found = plimsoll.load(tmp_path / "x.pt")
    assert found["first"] is found["second"][0] and found["second"][1] is found["third"]
    assert found["third"][0] is found["first"] and found["apart"] is not found["first"]
    found["first"].append(3)
    assert found["second"][1][0] == [1, 2, 3] and found["apart"] == [1, 2]
    assert found["third"][1]["a"].item() == 1 and found["empty"] == [(), ()]


def test_a_state_whose_groups_share_their_options_is_loaded(tmp_path):
    betas = (0.8, 0.9)
    parts = [plimsoll.nn.Parameter(plimsoll.ones(2)) for _ in range(2)]
    optimizer = plimsoll.optim.Adam([{"params": [part], "betas": betas} for part in parts])
    plimsoll.save(optimizer.state_dict(), tmp_path / "x.pt")
    groups = plimsoll.load(tmp_path / "x.pt")["param_groups"]
    assert [group["betas"] for group in groups] == [betas, betas]
    optimizer.load_state_dict({"state": {}, "param_groups": groups})


def test_arguments_that_nobody_knows_are_refused(tmp_path):
    path = tmp_path / "a.pt"
    plimsoll.save({"a": 1}, path)
    with pytest.raises(TypeError, match="'foo'"), pytest.warns(UserWarning, match="weights_only=False"):
        plimsoll.load(path, foo=1)
    with pytest.raises(TypeError, match="'foo'"):
        plimsoll.load(path, weights_only=False, foo=1)
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        plimsoll.load(path, pickle_module=pickle, weights_only=True)
    assert plimsoll.load(path, pickle_module=pickle) == {"a": 1}
    assert plimsoll.load(path, weights_only=False, errors="strict") == {"a": 1}


def test_what_cannot_be_written_raises_the_classes_of_pytorch(tmp_path):
    with pytest.raises(RuntimeError, match=f"Parent directory {tmp_path / 'no'} does not exist."):
        plimsoll.save(1, tmp_path / "no" / "a.pt")
    with pytest.raises(RuntimeError, match="is a directory"):
        plimsoll.save(1, tmp_path)
    with pytest.raises(pickle.PicklingError, match="not valid Unicode"):
        plimsoll.save("\ud800", tmp_path / "a.pt")
    with pytest.raises(ValueError, match="protocol must be <="):
        plimsoll.save(1, tmp_path / "a.pt", pickle_protocol=pickle.HIGHEST_PROTOCOL + 1)
    assert os.listdir(tmp_path) == []


def test_safe_globals_are_a_list_that_runs_nothing():
    from plimsoll import serialization

    # As PyTorch writes a fraction, in its archive with another pickle.
    written = io.BytesIO()
    plimsoll.save({"a": "0123456789abcdef"}, written)
    with zipfile.ZipFile(written) as old:
        entries = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(io.BytesIO(), "w") as new:
        for name, content in entries.items():
            new.writestr(name, pickle.dumps({"a": Fraction(1, 2)}, 2) if name.endswith("data.pkl") else content)
        archive = new.fp
    whole = archive.getvalue()
    with pytest.raises(pickle.UnpicklingError, match="fractions.Fraction") as refused:
        plimsoll.load(io.BytesIO(whole))
    assert "safe globals" not in str(refused.value)
    with serialization.safe_globals([Fraction]):
        assert serialization.get_safe_globals() == [Fraction]
        with pytest.raises(pickle.UnpicklingError, match="in the list of safe globals, but Plimsoll runs nothing"):
            plimsoll.load(io.BytesIO(whole))
    assert serialization.get_safe_globals() == []


def test_numbers_of_numpy_are_saved_as_plain_numbers():
    numpy = pytest.importorskip("numpy")
    saved = {"best": numpy.float64(0.9), "mean": numpy.mean([1.0, 2.0]), "n": numpy.int64(3), "ok": numpy.bool_(True)}
    saved["half"], saved["name"], saved["large"] = numpy.float32(0.5), numpy.str_("a"), numpy.uint64(2**63)
    loaded = back(saved)
    assert loaded == {"best": 0.9, "mean": 1.5, "n": 3, "ok": True, "half": 0.5, "name": "a", "large": 2**63}
    assert [type(value) for value in loaded.values()] == [float, float, int, bool, float, str, int]
    assert back({numpy.int64(3): 1}) == {3: 1}
    with pytest.raises(pickle.PicklingError, match="numpy.ndarray"):
        back(numpy.ones(2))


def check_attributed(values):
    noted, parameter, buffer = values["noted"], values["parameter"], values["buffer"]
    assert noted.__dict__ == {"note": "first", "places": [1, 2]} and noted.tolist() == [1, 1]
    assert noted is values["again"] and not noted.requires_grad
    assert type(parameter) is nn.Parameter and parameter.__dict__ == {"rate": 0.5} and not parameter.requires_grad
    assert buffer.__dict__ == {"persistent": True, "_is_buffer": True} and isinstance(buffer, nn.Buffer)
    assert values["complex"] == 1.5 - 2j and type(values["complex"]) is complex
    assert values["bytearray"] == bytearray(b"a\xff") and type(values["bytearray"]) is bytearray
    assert values["empty"] == bytearray() and type(values["empty"]) is bytearray


def test_attributes_of_tensors_and_values_made_by_a_call():
    read = plimsoll.load(GOLDEN / "attributed.pt")
    check_attributed(read)
    check_attributed(back(read))
    assert back({1j: 2}) == {1j: 2}


def check_circles(read):
    assert read["list"][1] is read["list"] and read["list"][0] == 1 and len(read["list"]) == 2
    assert read["dict"]["itself"] is read["dict"] and list(read["dict"]) == ["itself", "x"]
    assert type(read["ordered"]) is collections.OrderedDict and read["ordered"]["in"][0] is read["ordered"]
    first, second = read["both"]
    assert first[0] is second and second[0] is first and first is not second


def test_containers_that_hold_themselves():
    read = plimsoll.load(GOLDEN / "circles.pt")
    check_circles(read)
    check_circles(back(read))


def test_circles_that_attributes_of_a_dict_are_in():
    table, first, second = collections.OrderedDict(), [], []
    first.append(second)
    second.append(first)
    table["first"], table._metadata = first, {"second": second, "table": table}
    read = back(table)
    assert read["first"][0] is read._metadata["second"] and read._metadata["second"][0] is read["first"]
    assert read._metadata["table"] is read


def test_attributes_hold_what_files_hold():
    tensor, shared = plimsoll.ones(2), [1]
    tensor.list = shared
    read = back([shared, tensor])
    assert read[1].list is read[0] and read[1].list == [1]
    tensor.list = print
    with pytest.raises(pickle.PicklingError, match="builtin_function_or_method"):
        back(tensor)
    tensor.list = [tensor]
    with pytest.raises(pickle.PicklingError, match="holds itself"):
        back(tensor)
    # A name that a property has goes beside it: nothing of the file is run, and nothing is set by it.
    tensor.__dict__.clear()
    tensor.__dict__["requires_grad"] = True
    assert not back(tensor).requires_grad


class OwnParameter(nn.Parameter):
    pass


def test_a_class_made_from_parameters_is_saved_as_a_parameter():
    loaded = back(OwnParameter(plimsoll.ones(2)))
    assert type(loaded) is nn.Parameter and loaded.tolist() == [1.0, 1.0] and loaded.requires_grad
    with pytest.raises(pickle.PicklingError, match="UninitializedParameter"):
        back(nn.UninitializedParameter())


def test_a_device_that_is_not_here_is_a_name():
    # As in PyTorch: only memory needs the device, and a checkpoint's settings name the one it was trained on.
    loaded = back({"device": plimsoll.device("cuda:7"), "host": plimsoll.device("cpu")})
    assert str(loaded["device"]) == "cuda:7" and loaded["host"] == plimsoll.device("cpu")
