"""Groups, states as dictionaries, hooks, closures and refusals of optimizers, as PyTorch's."""

import pickle
import subprocess
import sys

import plimsoll
import pytest
from plimsoll import nn, optim
from plimsoll.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook


def two():
    return [nn.Parameter(plimsoll.ones(2)), nn.Parameter(plimsoll.ones(3))]


def with_grads(params):
    for param in params:
        param.grad = plimsoll.ones_like(param.detach())
    return params


def test_optimizers_are_loaded_when_they_are_named():
    program = (
        "import sys, plimsoll; assert 'plimsoll.optim' not in sys.modules; plimsoll.optim.SGD; "
        "assert 'optim' in vars(plimsoll) and not hasattr(plimsoll, 'optimm')"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_texts_are_pytorchs():
    expected = """SGD (
Parameter Group 0
    dampening: 0
    differentiable: False
    foreach: None
    fused: None
    lr: 0.001
    maximize: False
    momentum: 0.9
    nesterov: False
    weight_decay: 0
)"""
    assert repr(optim.SGD(two(), momentum=0.9)) == expected


def test_states_are_numbered_over_all_groups():
    first, second = with_grads(two())
    optimizer = optim.SGD([{"params": [first]}, {"params": second, "momentum": 0.5, "lr": 0.1}], lr=0.2)
    optimizer.step()
    state = optimizer.state_dict()
    assert list(state) == ["state", "param_groups"]
    assert list(state["state"]) == [1]
    assert state["state"][1]["momentum_buffer"] is optimizer.state[second]["momentum_buffer"]
    assert [group["params"] for group in state["param_groups"]] == [[0], [1]]
    assert [group["lr"] for group in state["param_groups"]] == [0.2, 0.1]


def test_names_of_parameters_are_kept():
    optimizer = optim.SGD(nn.Linear(2, 1).named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]


def test_states_that_do_not_fit_are_refused():
    optimizer = optim.SGD(two(), lr=0.1)
    state = optimizer.state_dict()
    with pytest.raises(ValueError, match="different number of parameter groups"):
        optim.SGD([{"params": one} for one in two()]).load_state_dict(state)
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        optim.SGD(two()[:1]).load_state_dict(state)


def test_a_loaded_state_takes_its_parameters_dtype():
    params = with_grads(two())
    optimizer = optim.Adam(params)
    optimizer.step()
    doubles = [nn.Parameter(param.detach().double()) for param in params]
    other = optim.Adam(doubles)
    other.load_state_dict(optimizer.state_dict())
    kept = other.state[doubles[0]]
    assert kept["exp_avg"].dtype == plimsoll.float64
    assert kept["step"].dtype == plimsoll.float32
    assert kept["step"] is not None and kept["step"].item() == 1


def test_hooks_run_around_steps_in_order():
    seen = []
    optimizer = optim.SGD(with_grads(two()), lr=0.1)
    handles = [
        register_optimizer_step_pre_hook(lambda *_: seen.append("all before")),
        optimizer.register_step_pre_hook(lambda *_: seen.append("before")),
        optimizer.register_step_post_hook(lambda *_: seen.append("after")),
        register_optimizer_step_post_hook(lambda *_: seen.append("all after")),
    ]
    optimizer.step()
    assert seen == ["all before", "before", "after", "all after"]
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert len(seen) == 4


def test_a_hook_may_change_the_arguments():
    optimizer = optim.SGD(with_grads(two()), lr=0.1)
    optimizer.register_step_pre_hook(lambda own, args, kwargs: ((own, lambda: 7), {}))
    assert optimizer.step() == 7
    optimizer.register_step_pre_hook(lambda *_: 3)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        optimizer.step()


def test_hooks_around_states():
    optimizer, seen = optim.SGD(two(), lr=0.1), []
    optimizer.register_state_dict_pre_hook(lambda own: seen.append("before"))
    optimizer.register_state_dict_post_hook(lambda own, state: {**state, "more": 1})
    state = optimizer.state_dict()
    assert state["more"] == 1
    optimizer.register_load_state_dict_pre_hook(lambda own, state: {**state, "param_groups": [{**state["param_groups"][0], "lr": 0.5}]})
    optimizer.register_load_state_dict_post_hook(lambda own: seen.append("after"))
    optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["lr"] == 0.5
    assert seen == ["before", "after"]


def test_a_closure_computes_with_gradients():
    param = nn.Parameter(plimsoll.tensor([3.0]))
    optimizer = optim.SGD([param], lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = (param * param).sum()
        loss.backward()
        return loss

    with plimsoll.no_grad():
        assert optimizer.step(closure).item() == 9.0
    assert param.tolist() == [0.0]


def test_zero_grad_lets_go_or_fills():
    params = with_grads(two())
    optimizer = optim.SGD(params, lr=0.1)
    kept = params[0].grad
    optimizer.zero_grad(set_to_none=False)
    assert params[0].grad is kept and kept.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert params[0].grad is None


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: optim.SGD([]), ValueError, "empty parameter list"),
        (lambda: optim.SGD(two()[0]), TypeError, "iterable of Tensors or dicts, but got"),
        (lambda: optim.SGD([1]), TypeError, "can only optimize Tensors, but one of the params is int"),
        (lambda: optim.SGD([two()[0] * 2]), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda: optim.SGD(two(), lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda: optim.SGD(two(), lr=plimsoll.ones(2)), ValueError, "Tensor lr must be 1-element"),
        (lambda: optim.SGD(two(), nesterov=True), ValueError, "Nesterov momentum requires"),
        (lambda: optim.Adam(two(), betas=(0.9, 1.0)), ValueError, "Invalid beta parameter at index 1: 1.0"),
        (lambda: optim.Adam(two(), fused=True, foreach=True), RuntimeError, "cannot be `True` together"),
        (lambda: optim.Rprop(two(), etas=(1.0, 0.5)), ValueError, "Invalid eta values: 1.0, 0.5"),
        (lambda: optim.LBFGS([{"params": one} for one in two()]), ValueError, "doesn't support per-parameter options"),
        (lambda: optim.SparseAdam(two()), NotImplementedError, "no sparse tensors"),
        (lambda: optim.SGD([{"params": set(two())}]), TypeError, "ordered collections"),
    ],
)
def test_what_cannot_be_is_refused(make, kind, text):
    with pytest.raises(kind, match=text):
        make()


def test_parameters_are_in_one_group():
    first, second = two()
    optimizer = optim.SGD([first])
    with pytest.raises(ValueError, match="more than one parameter group"):
        optimizer.add_param_group({"params": [first]})
    with pytest.raises(TypeError, match="param_group must be a dict"):
        optimizer.add_param_group([second])
    with pytest.warns(UserWarning, match="duplicate parameters"):
        twice = optim.SGD([first, second, first])
    # One number for both places, which is PyTorch's: the last.
    assert twice.state_dict()["param_groups"][0]["params"] == [2, 1, 2]
    optimizer.add_param_group({"params": second, "lr": 0.5})
    assert optimizer.param_groups[1]["params"] == [second]
    assert optimizer.param_groups[1]["lr"] == 0.5


def test_an_optimizer_of_the_users_has_hooks_too():
    class Own(optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        @plimsoll.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for param in group["params"]:
                    param.sub_(param.grad, alpha=group["lr"])

    seen = []
    optimizer = Own(with_grads(two()), 0.5)
    optimizer.register_step_post_hook(lambda *_: seen.append(1))
    optimizer.step()
    assert seen == [1]
    assert optimizer.param_groups[0]["params"][0].tolist() == [0.5, 0.5]


def test_a_pickled_optimizer_goes_on():
    params = with_grads(two())
    optimizer = optim.Adam(params, lr=0.1)
    optimizer.step()
    again = pickle.loads(pickle.dumps(optimizer))
    own = with_grads(again.param_groups[0]["params"])
    with_grads(params)
    optimizer.step()
    again.step()
    assert [param.tolist() for param in own] == [param.tolist() for param in params]
