"""The base class of modules: what it owns, its hooks, its state, its copies. Expected values are PyTorch's."""

import copy
import pickle
import warnings
from collections import OrderedDict

import plimsoll
import pytest
from plimsoll import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(3, 1))
        self.scale = nn.Parameter(plimsoll.tensor([2.0]))
        self.register_buffer("count", plimsoll.zeros(1))
        self.register_buffer("scratch", plimsoll.zeros(1), persistent=False)

    def forward(self, x):
        return self.rest(self.first(x)) * self.scale


def test_owned_tensors_have_paths_in_the_order_they_were_set():
    net = Net()
    assert [name for name, _ in net.named_parameters()] == [
        "scale", "first.weight", "first.bias", "rest.1.weight", "rest.1.bias",
    ]  # fmt: skip
    assert [name for name, _ in net.named_buffers()] == ["count", "scratch"]
    assert [name for name, _ in net.named_modules()] == ["", "first", "rest", "rest.0", "rest.1"]
    assert list(net.state_dict()) == ["scale", "count", "first.weight", "first.bias", "rest.1.weight", "rest.1.bias"]
    assert net.get_parameter("rest.1.bias") is net.rest[1].bias
    assert net.get_submodule("rest.0") is net.rest[0]


def test_the_text_of_a_module():
    assert repr(Net()) == (
        "Net(\n"
        "  (first): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (rest): Sequential(\n"
        "    (0): ReLU()\n"
        "    (1): Linear(in_features=3, out_features=1, bias=True)\n"
        "  )\n"
        ")"
    )


def test_a_parameter_that_two_modules_share_is_listed_once():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias", "1.bias"]
    assert len(list(net.named_parameters(remove_duplicate=False))) == 4
    assert list(net.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    again = copy.deepcopy(net)
    assert again[1].weight is again[0].weight


def test_what_cannot_be_an_attribute_is_refused():
    net = Net()
    with pytest.raises(TypeError, match="cannot assign '.*' as parameter 'scale'"):
        net.scale = plimsoll.ones(1)
    with pytest.raises(TypeError, match="cannot assign 'int' as child module 'first'"):
        net.first = 3
    with pytest.raises(KeyError, match="attribute 'forward' already exists"):
        net.register_parameter("forward", None)
    with pytest.raises(KeyError, match='parameter name can'):
        net.register_parameter("a.b", None)
    with pytest.raises(TypeError, match="is not a Module subclass"):
        net.add_module("x", 3)
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'nothing'"):
        net.nothing
    class Early(nn.Module):
        def __init__(self):
            self.weight = nn.Parameter(plimsoll.ones(1))

    with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call"):
        Early()


def test_all_problems_of_a_state_are_told_at_once():
    net = Net()
    state = net.state_dict()
    state["first.weight"] = plimsoll.zeros(2, 2)
    del state["scale"]
    state["more"] = plimsoll.zeros(1)
    with pytest.raises(RuntimeError) as told:
        net.load_state_dict(state)
    text = str(told.value)
    assert text.startswith("Error(s) in loading state_dict for Net:\n\t")
    assert 'Missing key(s) in state_dict: "scale".' in text
    assert 'Unexpected key(s) in state_dict: "more".' in text
    assert "size mismatch for first.weight: copying a param with shape torch.Size([2, 2]) from checkpoint" in text


def test_a_state_that_is_not_strict_says_what_it_left():
    net = Net()
    state = net.state_dict()
    del state["scale"]
    state["more"] = plimsoll.zeros(1)
    found = net.load_state_dict(state, strict=False)
    assert found.missing_keys == ["scale"]
    assert found.unexpected_keys == ["more"]
    assert repr(net.load_state_dict(net.state_dict())) == "<All keys matched successfully>"
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like"):
        net.load_state_dict([1])


def test_a_state_is_copied_or_taken():
    one, other = nn.Linear(2, 2), nn.Linear(2, 2)
    kept = other.weight
    other.load_state_dict(one.state_dict())
    assert other.weight is kept and plimsoll.equal(other.weight, one.weight)
    state = {name: value.clone() for name, value in one.state_dict().items()}
    other.load_state_dict(state, assign=True)
    assert other.weight is not kept and other.weight.data_ptr() == state["weight"].data_ptr()
    assert isinstance(other.weight, nn.Parameter) and other.weight.requires_grad


def test_hooks_of_states():
    net = nn.Linear(2, 2)
    seen = []
    net.register_state_dict_pre_hook(lambda module, prefix, keep_vars: seen.append(("before", prefix, keep_vars)))
    net.register_state_dict_post_hook(lambda module, state, prefix, meta: [None for _ in [state.pop("bias")]][0])
    assert list(net.state_dict()) == ["weight"]
    assert seen == [("before", "", False)]
    net.register_load_state_dict_pre_hook(lambda module, state, prefix, *rest: state.update(bias=plimsoll.ones(2)))
    net.register_load_state_dict_post_hook(lambda module, keys: seen.append(list(keys.missing_keys)))
    net.load_state_dict(net.state_dict())
    assert net.bias.tolist() == [1.0, 1.0]
    assert seen[-1] == []


def test_a_module_with_a_state_of_its_own():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.seen = 3

        def get_extra_state(self):
            return {"seen": self.seen}

        def set_extra_state(self, state):
            self.seen = state["seen"]

    net = nn.Sequential(Counting())
    state = net.state_dict()
    assert list(state) == ["0._extra_state"]
    net[0].seen = 5
    net.load_state_dict(state)
    assert net[0].seen == 3
    with pytest.raises(RuntimeError, match="_extra_state"):
        net.load_state_dict({})


def test_forward_hooks_see_and_replace():
    net = nn.Identity()
    order = []
    net.register_forward_pre_hook(lambda module, args: order.append("pre") or (args[0] + 1,))
    net.register_forward_hook(lambda module, args, out: order.append("post") or out * 2)
    first = net.register_forward_hook(lambda module, args, out: order.append("first"), prepend=True)
    assert net(plimsoll.ones(1)).item() == 4.0
    assert order == ["pre", "first", "post"]
    first.remove()
    net(plimsoll.ones(1))
    assert order == ["pre", "first", "post", "pre", "post"]


def test_forward_hooks_with_keywords():
    class Scaled(nn.Module):
        def forward(self, x, *, by):
            return x * by

    net = Scaled()
    net.register_forward_pre_hook(lambda module, args, kwargs: (args, {"by": kwargs["by"] + 1}), with_kwargs=True)
    seen = []
    net.register_forward_hook(lambda module, args, kwargs, out: seen.append(kwargs["by"]), with_kwargs=True)
    assert net(plimsoll.ones(1), by=2).item() == 3.0
    assert seen == [3]


def test_a_hook_that_is_always_called_sees_failures():
    class Failing(nn.Module):
        def forward(self, x):
            raise ValueError("no")

    net, seen = Failing(), []
    net.register_forward_hook(lambda *args: seen.append("plain"))
    net.register_forward_hook(lambda *args: seen.append("always"), always_call=True)
    with pytest.raises(ValueError, match="no"):
        net(plimsoll.ones(1))
    assert seen == ["always"]


def test_hooks_of_all_modules():
    from plimsoll.nn.modules.module import register_module_forward_hook

    seen = []
    with register_module_forward_hook(lambda module, args, out: seen.append(type(module).__name__)):
        nn.Sequential(nn.ReLU(), nn.Tanh())(plimsoll.ones(1))
    nn.ReLU()(plimsoll.ones(1))
    assert seen == ["ReLU", "Tanh", "Sequential"]


def test_backward_hooks_see_and_replace_gradients():
    net = nn.Linear(2, 1, bias=False)
    with plimsoll.no_grad():
        net.weight.copy_(plimsoll.tensor([[3.0, 4.0]]))
    seen = []

    def before(module, grad_output):
        seen.append(("pre", grad_output[0].tolist()))
        return (grad_output[0] * 2,)

    def after(module, grad_input, grad_output):
        seen.append(("full", grad_input[0].tolist(), grad_output[0].tolist()))
        return (grad_input[0] * 10,)

    net.register_full_backward_pre_hook(before)
    net.register_full_backward_hook(after)
    x = plimsoll.ones(1, 2, requires_grad=True)
    net(x).sum().backward()
    assert seen == [("pre", [[1.0]]), ("full", [[6.0, 8.0]], [[2.0]])]
    assert x.grad.tolist() == [[60.0, 80.0]]
    assert net.weight.grad.tolist() == [[2.0, 2.0]]


def test_backward_hooks_without_gradients_of_arguments():
    net, seen = nn.Linear(2, 1), []
    net.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append((grad_input, len(grad_output))))
    net(plimsoll.ones(1, 2)).sum().backward()
    assert seen == [((None,), 1)]


def test_backward_hooks_see_zeros_for_tensors_without_gradients():
    seen = []

    def hook(module, grad_input, grad_output):
        seen.append([None if grad is None else (grad.tolist(), grad.dtype) for grad in grad_input])

    loss = nn.CrossEntropyLoss()
    loss.register_full_backward_hook(hook)
    scores = plimsoll.zeros(1, 2, requires_grad=True)
    loss(scores, plimsoll.tensor([1])).backward()
    assert seen.pop() == [([[0.5, -0.5]], plimsoll.float32), ([0], plimsoll.int64)]

    class First(nn.Module):
        def forward(self, one, other, number):
            return one * 2

    first = First()
    first.register_full_backward_hook(hook)
    one, unused = plimsoll.ones(2, requires_grad=True), plimsoll.ones(3, requires_grad=True)
    first(one, unused, 4).sum().backward()
    assert seen == [[([2.0, 2.0], plimsoll.float32), ([0.0] * 3, plimsoll.float32), None]]
    assert unused.grad.tolist() == [0.0] * 3


def test_casts_keep_parameters_and_integers():
    net = nn.BatchNorm1d(2)
    weight = net.weight
    net.double()
    assert net.weight is weight and weight.dtype == plimsoll.float64
    assert net.running_mean.dtype == plimsoll.float64
    assert net.num_batches_tracked.dtype == plimsoll.int64
    assert net.to(plimsoll.float16).weight.dtype == plimsoll.float16
    with pytest.raises(TypeError, match="only accepts floating point"):
        net.to(plimsoll.int64)


def test_modes_reach_all_modules():
    net = Net().eval()
    assert not any(module.training for module in net.modules())
    assert net.train().rest[1].training
    with pytest.raises(ValueError, match="training mode is expected to be boolean"):
        net.train(3)
    net.requires_grad_(False)
    assert not any(param.requires_grad for param in net.parameters())
    order = []
    net.apply(lambda module: order.append(type(module).__name__))
    assert order == ["Linear", "ReLU", "Linear", "Sequential", "Net"]


def test_gradients_are_dropped_or_zeroed():
    net = nn.Linear(2, 1)
    net(plimsoll.ones(1, 2)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert net.weight.grad.tolist() == [[0.0, 0.0]]
    net.zero_grad()
    assert net.weight.grad is None


def _seen(module, args, out):
    return None


def test_copies_and_pickles_are_whole():
    net = nn.Sequential(OrderedDict(a=nn.Linear(2, 3), b=nn.BatchNorm1d(3)))
    net.a.register_forward_hook(_seen)
    net.b.tag = ("x", 1)
    x = plimsoll.ones(4, 2)
    for again in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert list(again.state_dict()) == list(net.state_dict())
        assert again.a.weight is not net.a.weight and plimsoll.equal(again.a.weight, net.a.weight)
        assert isinstance(again.a.weight, nn.Parameter) and again.a.weight.requires_grad
        assert again.b.tag == ("x", 1) and len(again.a._forward_hooks) == 1
        assert plimsoll.equal(again(x), copy.deepcopy(net)(x))


def test_parameters_and_buffers():
    weight = nn.Parameter(plimsoll.ones(2))
    assert repr(weight) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert isinstance(weight, plimsoll.Tensor) and not isinstance(weight * 1, nn.Parameter)
    assert isinstance(pickle.loads(pickle.dumps(weight)), nn.Parameter)
    net = nn.Module()
    net.kept = nn.Buffer(plimsoll.ones(1))
    net.loose = nn.Buffer(plimsoll.ones(1), persistent=False)
    assert list(net.state_dict()) == ["kept"] and len(list(net.buffers())) == 2


def test_batch_norm_counts_and_averages():
    norm = nn.BatchNorm1d(1, momentum=None)
    for value in (1.0, 3.0):
        norm(plimsoll.tensor([[value], [value + 2]]))
    assert norm.num_batches_tracked.item() == 2
    assert norm.running_mean.tolist() == [3.0]
    assert norm.running_var.tolist() == [2.0]
    old = OrderedDict((name, value) for name, value in norm.state_dict().items() if name != "num_batches_tracked")
    norm.load_state_dict(old)
    old._metadata = {"": {"version": 2}}
    with pytest.raises(RuntimeError, match="num_batches_tracked"):
        norm.load_state_dict(old)


def test_a_loss_of_old_arguments():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert nn.MSELoss(size_average=False).reduction == "sum"
        assert nn.MSELoss(reduce=False).reduction == "none"


def test_backward_hooks_of_one_kind():
    kinds = ["register_full_backward_hook", "register_backward_hook"]
    for first, second in [kinds, kinds[::-1]]:
        net = nn.Linear(2, 2)
        getattr(net, first)(lambda *seen: None)
        getattr(net, first)(lambda *seen: None)
        with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full backward hooks"):
            getattr(net, second)(lambda *seen: None)


def test_a_parameter_without_shape_is_no_empty_one():
    net = nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d())
    weight = net[0].weight
    for use in [weight.numel, weight.nelement, lambda: weight + 1, lambda: plimsoll.sum(weight), lambda: weight.mul_(2)]:
        with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter in"):
            use()
    copies = [pickle.loads(pickle.dumps(net)), copy.deepcopy(net)]
    for made in [net, *copies]:
        assert made(plimsoll.ones(2, 5)).shape == (2, 3)
        assert made[0].weight.numel() == 15 and type(made[0].weight) is nn.Parameter
    half = pickle.loads(pickle.dumps(nn.LazyLinear(3, dtype=plimsoll.bfloat16)))
    assert half.weight.dtype is plimsoll.bfloat16 and half.weight.requires_grad


def test_a_backward_hook_without_inputs_that_require_gradients_is_warned_of():
    layer = nn.Linear(2, 2)
    layer.register_full_backward_pre_hook(lambda module, grads: None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer(plimsoll.ones(1, 2)).sum().backward()
        layer.register_full_backward_hook(lambda module, before, after: None)
        layer(plimsoll.ones(1, 2, requires_grad=True)).sum().backward()
    with pytest.warns(UserWarning, match="Full backward hook is firing .* since no inputs require gradients") as said:
        layer(plimsoll.ones(1, 2)).sum().backward()
    assert [one.filename for one in said] == [__file__]


def test_arguments_of_state_dict_by_place_are_warned_of_and_names_count():
    layer = nn.Linear(1, 1)
    for args, kwargs, names in [
        (({}, "a.", True), {}, ["a.weight", "a.bias"]),
        (({},), {"prefix": "b."}, ["b.weight", "b.bias"]),
        (({"z": 1}, "q"), {"destination": {}, "prefix": "b."}, ["b.weight", "b.bias"]),
    ]:
        with pytest.warns(FutureWarning, match="Positional args are being deprecated") as said:
            assert list(layer.state_dict(*args, **kwargs)) == names
        assert [one.filename for one in said] == [__file__]


def test_keys_that_do_not_fit_are_shown_as_in_pytorch():
    found = nn.Linear(1, 1).load_state_dict({}, strict=False)
    assert repr(found) == "_IncompatibleKeys(missing_keys=['weight', 'bias'], unexpected_keys=[])"


@pytest.mark.parametrize(("key", "value", "words"), [(4, 5, "key weights .* 4.* 3"), (3, 4, "value weights .* 4.* 5")])
def test_attention_says_which_width_does_not_fit(key, value, words):
    attention = nn.MultiheadAttention(4, 2, kdim=3, vdim=5)
    with pytest.raises(AssertionError, match=f"expecting {words}"):
        attention(plimsoll.ones(3, 2, 4), plimsoll.ones(3, 2, key), plimsoll.ones(3, 2, value))


def test_compile_leaves_a_module_as_it_is_and_says_so_once(monkeypatch):
    monkeypatch.setattr(plimsoll._compile, "_said", False)
    layer, x = nn.Linear(2, 2), plimsoll.ones(1, 2)
    before = layer(x).tolist()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert layer.compile(disable=True) is None and not said
        assert layer.compile(fullgraph=True) is None and layer.compile() is None
        plimsoll.compile(layer)
    assert [(one.filename, "nothing is compiled" in str(one.message)) for one in said] == [(__file__, True)]
    assert layer(x).tolist() == before
    with pytest.raises(TypeError):
        layer.compile("inductor")
