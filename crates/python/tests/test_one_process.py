"""Programs that could run in several processes, and run in one: what they import and ask is there; what needs a process group raises
what PyTorch raises before one is made."""

import plimsoll as pm
import plimsoll.distributed as dist
import pytest
from plimsoll.nn.parallel import DistributedDataParallel


def test_there_are_no_process_groups():
    assert not dist.is_available() and not dist.is_initialized()
    assert not (dist.is_nccl_available() or dist.is_gloo_available() or dist.is_mpi_available())
    assert pm.distributed is dist


def test_a_launcher_is_seen(monkeypatch):
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    assert not dist.is_torchelastic_launched()
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    assert dist.is_torchelastic_launched()


NEED_A_GROUP = {
    "get_rank": (),
    "get_world_size": (),
    "get_backend": (),
    "barrier": (),
    "new_group": (),
    "all_reduce": (pm.ones(1),),
    "broadcast": (pm.ones(1), 0),
    "all_gather": ([pm.ones(1)], pm.ones(1)),
    "send": (pm.ones(1), 0),
}


@pytest.mark.parametrize("name", NEED_A_GROUP)
def test_what_needs_a_group_raises_as_before_one_is_made(name):
    with pytest.raises(ValueError, match="Default process group has not been initialized, please make sure to call init_process_group"):
        getattr(dist, name)(*NEED_A_GROUP[name])


def test_making_and_leaving_a_group_raises():
    with pytest.raises(RuntimeError, match="there are no process groups in Plimsoll.*DataParallel"):
        dist.init_process_group(backend="gloo", rank=0, world_size=1)
    with pytest.raises(AssertionError, match="Process group cannot be None"):
        dist.destroy_process_group()


def test_a_module_for_several_processes_raises():
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        DistributedDataParallel(pm.nn.Linear(1, 1))


def test_nothing_is_exported():
    assert not pm.onnx.is_in_onnx_export()
    with pytest.raises(RuntimeError, match="does not write ONNX.*torch.save"):
        pm.onnx.export(pm.nn.Linear(1, 1), (pm.ones(1),), "model.onnx")
