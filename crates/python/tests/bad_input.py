"""Bad input, as cases for either library: each is given the module that is called `torch`, and raises. What it raises is the same
class in both (`test_bad_input.py` here, `conformance/bad_input.py` beside PyTorch)."""

import io
import mmap
import os
import pickle
import signal
import tempfile
import zipfile

import numpy


class Angry:
    """Raises whatever it is asked."""

    def _raise(self, *_):
        raise ZeroDivisionError("angry")

    __index__ = __float__ = __int__ = __len__ = __getitem__ = __array__ = __iter__ = __bool__ = _raise


class Stranger:
    """Has nothing that a tensor has."""


class LoudNumber:
    """A class that no file may name."""

    def __reduce__(self):
        return print, ("loud",)


# ---- foreign objects


def add_a_stranger(torch):
    torch.add(torch.ones(2), Stranger())


def plus_a_stranger(torch):
    torch.ones(2) + Stranger()


def plus_a_text(torch):
    torch.ones(2) + "a"


def tensor_of_a_stranger(torch):
    torch.tensor(Stranger())


def tensor_of_strangers(torch):
    torch.tensor([Stranger(), Stranger()])


def tensor_of_a_text(torch):
    torch.tensor("a")


def tensor_of_mixed(torch):
    torch.tensor([1, "a"])


def tensor_of_uneven_lists(torch):
    torch.tensor([[1, 2], [3]])


def tensor_of_an_angry_sequence(torch):
    torch.tensor([Angry()])


def tensor_of_none(torch):
    torch.tensor([None])


def as_tensor_of_a_stranger(torch):
    torch.as_tensor(Stranger())


def from_numpy_of_a_list(torch):
    torch.from_numpy([1.0])


def from_numpy_of_objects(torch):
    torch.from_numpy(numpy.array([Stranger()], dtype=object))


def from_numpy_of_texts(torch):
    torch.from_numpy(numpy.array(["a"]))


def from_dlpack_of_a_stranger(torch):
    torch.from_dlpack(Stranger())


def from_dlpack_twice_of_one_capsule(torch):
    capsule = torch.utils.dlpack.to_dlpack(torch.ones(2))
    torch.from_dlpack(capsule)
    torch.from_dlpack(capsule)


def index_by_a_stranger(torch):
    torch.ones(2)[Stranger()]


def index_by_a_text(torch):
    torch.ones(2)["a"]


def index_by_a_float(torch):
    torch.ones(2)[0.5]


def index_by_an_angry_number(torch):
    torch.ones(2)[Angry()]


def assign_a_stranger(torch):
    torch.ones(2)[0] = Stranger()


def assign_a_text(torch):
    torch.ones(2)[0] = "a"


def zeros_of_a_stranger(torch):
    torch.zeros(Stranger())


def zeros_of_an_angry_number(torch):
    torch.zeros(Angry())


def cat_of_a_stranger(torch):
    torch.cat([torch.ones(2), Stranger()])


def cat_of_nothing(torch):
    torch.cat([])


def stack_of_a_number(torch):
    torch.stack(5)


def linear_of_a_text(torch):
    torch.nn.Linear(3, 2)("a")


def linear_of_an_array(torch):
    torch.nn.Linear(3, 2)(numpy.ones((1, 3), dtype="float32"))


def sgd_of_strangers(torch):
    torch.optim.SGD([Stranger()], lr=0.1)


def sgd_of_a_tensor(torch):
    torch.optim.SGD(torch.ones(2), lr=0.1)


def load_state_dict_of_a_text(torch):
    torch.nn.Linear(3, 2).load_state_dict("a")


def load_state_dict_of_strangers(torch):
    torch.nn.Linear(3, 2).load_state_dict({"weight": Stranger(), "bias": Stranger()})


def assign_a_stranger_to_a_parameter(torch):
    torch.nn.Linear(3, 2).weight = Stranger()


def assign_a_stranger_to_data(torch):
    torch.ones(2).data = Stranger()


def assign_a_stranger_to_grad(torch):
    torch.ones(2, requires_grad=True).grad = Stranger()


def dtype_of_a_text(torch):
    torch.zeros(2, dtype="float32")


def device_of_a_text(torch):
    torch.zeros(2, device="abacus")


def device_of_a_stranger(torch):
    torch.zeros(2, device=Stranger())


def a_function_of_another_class(torch):
    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            raise ZeroDivisionError("loud")

    torch.ones(2) + torch.ones(2).as_subclass(Loud)


def wrong_shapes(torch):
    torch.ones(2, 3) + torch.ones(2, 4)


def wrong_shapes_of_a_product(torch):
    torch.ones(2, 3) @ torch.ones(2, 3)


def wrong_dtype_of_an_index(torch):
    torch.ones(3).gather(0, torch.ones(2))


def index_out_of_range(torch):
    torch.ones(3)[5]


def collate_strangers(torch):
    torch.utils.data.default_collate([Stranger()])


# ---- dead buffers


def a_released_view(torch):
    view = memoryview(bytearray(8))
    view.release()
    torch.frombuffer(view, dtype=torch.uint8)


def a_closed_map(torch):
    mapped = mmap.mmap(-1, 4096)
    mapped.close()
    torch.frombuffer(mapped, dtype=torch.uint8)


def an_empty_buffer(torch):
    torch.frombuffer(b"", dtype=torch.uint8)


def a_buffer_that_is_none(torch):
    torch.frombuffer(Stranger(), dtype=torch.uint8)


def a_buffer_that_is_too_short(torch):
    torch.frombuffer(bytearray(8), dtype=torch.float32, count=3)


def a_buffer_of_half_elements(torch):
    torch.frombuffer(bytearray(7), dtype=torch.float32)


# ---- exceptions in hooks and forward


class _Problem(Exception):
    pass


def _raises(*_, **__):
    raise _Problem("hook")


def _model(torch):
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))


def in_forward(torch):
    class Bad(torch.nn.Module):
        def forward(self, x):
            with torch.no_grad():
                raise _Problem("forward")

    torch.nn.Sequential(torch.nn.Linear(3, 3), Bad())(torch.ones(2, 3))


def in_a_forward_hook(torch):
    model = _model(torch)
    model[1].register_forward_hook(_raises)
    model(torch.ones(2, 3))


def in_a_forward_pre_hook(torch):
    model = _model(torch)
    model[1].register_forward_pre_hook(_raises)
    model(torch.ones(2, 3))


def in_a_full_backward_hook(torch):
    model = _model(torch)
    model[1].register_full_backward_hook(_raises)
    model(torch.ones(2, 3)).sum().backward()


def in_a_tensor_hook(torch):
    x = torch.ones(3, requires_grad=True)
    x.register_hook(_raises)
    (x * 2).sum().backward()


def in_a_hook_after_accumulation(torch):
    x = torch.ones(3, requires_grad=True)
    x.register_post_accumulate_grad_hook(_raises)
    (x * 2).sum().backward()


def a_hook_that_returns_a_stranger(torch):
    x = torch.ones(3, requires_grad=True)
    x.register_hook(lambda grad: Stranger())
    (x * 2).sum().backward()


def a_hook_that_returns_another_shape(torch):
    x = torch.ones(3, requires_grad=True)
    x.register_hook(lambda grad: torch.ones(7))
    (x * 2).sum().backward()


def in_packing(torch):
    with torch.autograd.graph.saved_tensors_hooks(_raises, lambda x: x):
        torch.ones(3, requires_grad=True).exp()


def in_unpacking(torch):
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x, _raises):
        y = torch.ones(3, requires_grad=True).exp()
    y.sum().backward()


def in_a_functions_forward(torch):
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            raise _Problem("forward")

    Bad.apply(torch.ones(3, requires_grad=True))


def in_a_functions_backward(torch):
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            raise _Problem("backward")

    Bad.apply(torch.ones(3, requires_grad=True)).sum().backward()


def in_a_state_dict_hook(torch):
    model = _model(torch)
    model._register_state_dict_hook(_raises)
    model.state_dict()


def in_an_optimizers_closure(torch):
    torch.optim.LBFGS(_model(torch).parameters()).step(_raises)


def in_a_checkpointed_function(torch):
    torch.utils.checkpoint.checkpoint(_raises, torch.ones(3, requires_grad=True), use_reentrant=False)


# ---- interrupts


def an_interrupt_in_backward(torch):
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y.register_hook(lambda grad: os.kill(os.getpid(), signal.SIGINT))
    for _ in range(200):
        y = y + 1
    y.sum().backward()


def an_interrupt_in_a_functions_backward(torch):
    class Interrupted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            raise KeyboardInterrupt

    Interrupted.apply(torch.ones(3, requires_grad=True)).sum().backward()


def an_interrupt_in_forward(torch):
    model = _model(torch)
    model[1].register_forward_hook(lambda *_: os.kill(os.getpid(), signal.SIGINT))
    model(torch.ones(2, 3))


def an_exit_in_backward(torch):
    x = torch.ones(3, requires_grad=True)
    x.register_hook(lambda grad: (_ for _ in ()).throw(SystemExit(3)))
    (x * 2).sum().backward()


# ---- workers of a loader


class Samples:
    def __init__(self, at_two):
        self.at_two = at_two

    def __len__(self):
        return 6

    def __getitem__(self, index):
        return self.at_two() if index == 2 else index


def a_worker_that_is_killed(torch):
    list(torch.utils.data.DataLoader(Samples(lambda: os.kill(os.getpid(), signal.SIGKILL)), num_workers=2))


def a_dataset_that_raises(torch):
    list(torch.utils.data.DataLoader(Samples(_raises), num_workers=0))


def a_dataset_that_raises_in_a_worker(torch):
    list(torch.utils.data.DataLoader(Samples(lambda: 1 // 0), num_workers=2))


def a_dataset_of_strangers_in_a_worker(torch):
    list(torch.utils.data.DataLoader(Samples(Stranger), num_workers=2))


def a_dataset_without_a_length(torch):
    torch.utils.data.DataLoader(Stranger(), shuffle=True)


# ---- pickles and files that are not tensors


def load_nothing(torch):
    torch.load(io.BytesIO(b""))


def load_a_text(torch):
    torch.load(io.BytesIO(b"no pickle at all"))


def load_a_pickle_of_a_class(torch):
    torch.load(io.BytesIO(pickle.dumps(LoudNumber())))


def load_an_archive_that_calls_a_function(torch):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(LoudNumber(), 2))
        archive.writestr("archive/version", "3\n")
    file.seek(0)
    torch.load(file)


def load_the_first_half(torch):
    file = io.BytesIO()
    torch.save(torch.arange(1000.0), file)
    torch.load(io.BytesIO(file.getvalue()[: len(file.getvalue()) // 2]))


def load_another_archive(torch):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.txt", "text")
    file.seek(0)
    torch.load(file)


def load_a_folder(torch):
    with tempfile.TemporaryDirectory() as folder:
        torch.load(folder)


def load_what_is_not_there(torch):
    torch.load("/nowhere/model.pt")


def load_a_stranger(torch):
    torch.load(Stranger())


def unpickle_the_first_half(torch):
    whole = pickle.dumps(torch.arange(1000.0))
    pickle.loads(whole[: len(whole) // 2])


def save_what_cannot_be_pickled(torch):
    torch.save(lambda: 0, io.BytesIO())


def pickle_what_came_from_a_graph(torch):
    import copy

    copy.deepcopy(torch.ones(2, requires_grad=True) * 2)


CASES = {name: case for name, case in globals().copy().items() if getattr(case, "__code__", None) and not name.startswith("_")}


def raised_by(case, torch):
    """The names of the class that a case raises and of those above it; none if it raises nothing."""
    try:
        case(torch)
    except BaseException as problem:
        return [cls.__name__ for cls in type(problem).__mro__]
    return []
