"""What is done to parameters: clipping, vectors, norms, parametrizations, pruning, packing. Expected values are PyTorch's."""

import copy
import math
import pickle
import warnings

import plimsoll
import pytest
from plimsoll import nn
from plimsoll.nn.utils import parametrizations, parametrize, prune
from plimsoll.nn.utils.rnn import (
    PackedSequence,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpack_sequence,
    unpad_sequence,
)


def layer():
    made = nn.Linear(3, 2)
    with plimsoll.no_grad():
        made.weight.copy_(plimsoll.tensor([[1.0, -2.0, 3.0], [-4.0, 5.0, -6.0]]))
        made.bias.copy_(plimsoll.tensor([0.5, -0.5]))
    return made


def near(tensor, expected):
    return plimsoll.allclose(tensor.detach(), plimsoll.tensor(expected), atol=1e-5)


def test_gradients_are_clipped_to_a_norm():
    first, second = nn.Parameter(plimsoll.zeros(2)), nn.Parameter(plimsoll.zeros(1))
    first.grad, second.grad = plimsoll.tensor([3.0, 0.0]), plimsoll.tensor([4.0])
    assert nn.utils.clip_grad_norm_([first, second], 1.0).item() == 5.0
    assert near(first.grad, [0.6, 0.0]) and near(second.grad, [0.8])
    assert nn.utils.clip_grad_norm_([first, second], 10.0, norm_type=math.inf).item() == pytest.approx(0.8)
    assert near(second.grad, [0.8])
    first.grad = plimsoll.tensor([math.inf, 1.0])
    with pytest.raises(RuntimeError, match="The total norm of order 2.0 for gradients from `parameters` is non-finite"):
        nn.utils.clip_grad_norm_([first], 1.0, error_if_nonfinite=True)
    assert nn.utils.clip_grad_norm_([nn.Parameter(plimsoll.ones(1))], 1.0).item() == 0.0


@pytest.mark.parametrize("dtype", [plimsoll.float32, plimsoll.bfloat16, plimsoll.float64])
def test_gradients_on_a_device_are_clipped_at_once_to_what_they_are_on_the_host(dtype):
    gpu, seen = plimsoll.stand_in(), []
    for device in ("cpu", gpu):
        grads = [plimsoll.linspace(-3, 5, count, dtype=dtype).to(device) for count in (7, 1, 300)]
        params = [nn.Parameter(plimsoll.zeros_like(grad)) for grad in grads]
        for param, grad in zip(params, grads):
            param.grad = grad
        total = nn.utils.clip_grad_norm_(params, 2.0)
        assert total.dtype == dtype and total.device == grads[0].device
        seen.append([total.cpu(), *(param.grad.cpu() for param in params)])
    for host, there in zip(*seen):
        assert plimsoll.allclose(host.double(), there.double(), rtol=1e-2 if dtype == plimsoll.bfloat16 else 1e-6)
    same = nn.Parameter(plimsoll.zeros(2, device=gpu))
    same.grad = plimsoll.tensor([3.0, 4.0], device=gpu)
    # Once for the norm and twice for the product, as in PyTorch: sqrt(50), then 2 / sqrt(50) twice.
    assert nn.utils.clip_grad_norm_([same, same], 2.0).item() == pytest.approx(50**0.5)
    assert near(same.grad.cpu(), [3.0 * 4 / 50, 4.0 * 4 / 50])


@pytest.mark.parametrize("where", ["cpu", "stand-in"])
def test_gradients_of_several_dtypes_are_clipped_together(where):
    device = plimsoll.stand_in() if where == "stand-in" else where
    given = [(plimsoll.bfloat16, 3.0), (plimsoll.float32, 4.0), (plimsoll.bfloat16, 12.0), (plimsoll.float64, 84.0)]
    params = [nn.Parameter(plimsoll.zeros(1, dtype=dtype, device=device)) for dtype, _ in given]
    for param, (dtype, value) in zip(params, given):
        param.grad = plimsoll.full((1,), value, dtype=dtype, device=device)
    total = nn.utils.clip_grad_norm_(params, 17.0)
    assert (total.dtype, total.item()) == (plimsoll.float64, 85.0)  # PyTorch's dtype too
    for param, (dtype, value) in zip(params, given):
        assert param.grad.dtype == dtype and param.grad.item() == pytest.approx(value / 5, rel=4e-3)


@pytest.mark.parametrize("where", ["cpu", "stand-in"])
def test_gradients_whose_elements_share_memory_are_not_clipped(where):
    device = plimsoll.stand_in() if where == "stand-in" else where
    param = nn.Parameter(plimsoll.zeros(4, device=device))
    param.grad = plimsoll.tensor([2.0], device=device).expand(4)
    assert nn.utils.get_total_norm([param.grad]).item() == 4.0
    norm = plimsoll.tensor(4.0, device=device)
    for clip in (
        lambda: nn.utils.clip_grad_norm_(param, 1.0),
        lambda: nn.utils.clip_grads_with_norm_(param, 1.0, norm),
        lambda: nn.utils.clip_grad_value_(param, 1.0),
    ):
        with pytest.raises(RuntimeError, match="share memory"):
            clip()
    assert param.grad.tolist() == [2.0] * 4
    # One element, rows apart from each other, and columns: each has its place.
    numbers = plimsoll.arange(1.0, 9.0, device=device)
    for shape, strides, expected in (
        ((1, 2), (0, 1), [0.5, 1.0]),
        ((2, 2), (5, 2), [0.5, 1.5, 3.0, 4.0]),
        ((2, 3), (1, 2), [0.5, 1.5, 2.5, 1.0, 2.0, 3.0]),
    ):
        param = nn.Parameter(plimsoll.zeros(shape, device=device))
        param.grad = numbers.clone().as_strided(shape, strides)
        nn.utils.clip_grads_with_norm_(param, 2.0, norm)
        assert param.grad.flatten().tolist() == pytest.approx(expected)


def test_a_norm_that_is_given_is_one_number_in_a_tensor():
    weight, idle = nn.Parameter(plimsoll.zeros(2)), nn.Parameter(plimsoll.zeros(2))
    weight.grad = plimsoll.tensor([3.0, 4.0])
    with pytest.raises(TypeError, match="clamp"):
        nn.utils.clip_grads_with_norm_([weight], 1.0, 10.0)
    rows = plimsoll.tensor([10.0, 20.0])
    with pytest.raises(RuntimeError, match="scalar tensor expected to be 0 dim but it has 1 dimensions and 2 elements"):
        nn.utils.clip_grads_with_norm_([weight], 1.0, rows)
    # As there, nothing looks at the norm where there is nothing to scale, but at the number.
    assert nn.utils.clip_grads_with_norm_([idle], 1.0, 10.0) is None
    with pytest.raises(ValueError, match="could not convert string to float"):
        nn.utils.clip_grads_with_norm_([], "much", 10.0)
    assert weight.grad.tolist() == [3.0, 4.0]
    for device in ("cpu", plimsoll.stand_in()):
        there = nn.Parameter(plimsoll.zeros(2, device=device))
        there.grad = plimsoll.tensor([3.0, 4.0], device=device)
        nn.utils.clip_grads_with_norm_([there], 1.0, rows.to(device), foreach=False)
        assert near(there.grad.cpu(), [0.3, 0.2])


def test_gradients_are_clipped_to_a_value():
    weight = nn.Parameter(plimsoll.zeros(3))
    weight.grad = plimsoll.tensor([-3.0, 0.5, 2.0])
    nn.utils.clip_grad_value_(weight, 1.0)
    assert weight.grad.tolist() == [-1.0, 0.5, 1.0]
    for none in ([], (one for one in ()), [nn.Parameter(plimsoll.zeros(3))]):
        with pytest.raises(RuntimeError, match="no parameter has a gradient to clip"):
            nn.utils.clip_grad_value_(none, 1.0)


def test_parameters_as_a_vector():
    net = layer()
    vector = nn.utils.parameters_to_vector(net.parameters())
    assert vector.tolist() == [1.0, -2.0, 3.0, -4.0, 5.0, -6.0, 0.5, -0.5]
    nn.utils.vector_to_parameters(vector.detach() * 2, net.parameters())
    assert net.bias.tolist() == [1.0, -1.0]
    with pytest.raises(TypeError, match="expected torch.Tensor, but got: list"):
        nn.utils.vector_to_parameters([1.0], net.parameters())


def test_weight_norm_by_a_hook():
    net = layer()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nn.utils.weight_norm(net)
        with pytest.raises(RuntimeError, match="Cannot register two weight_norm hooks"):
            nn.utils.weight_norm(net)
    assert list(net.state_dict()) == ["bias", "weight_g", "weight_v"]
    assert near(net.weight_g, [[math.sqrt(14)], [math.sqrt(77)]])
    with plimsoll.no_grad():
        net.weight_g.mul_(2)
    net(plimsoll.ones(1, 3)).sum().backward()
    assert near(net.weight, [[2.0, -4.0, 6.0], [-8.0, 10.0, -12.0]])
    assert near(net.weight_g.grad, [[2 / math.sqrt(14)], [-5 / math.sqrt(77)]])
    nn.utils.remove_weight_norm(net)
    assert list(net.state_dict()) == ["bias", "weight"]
    with pytest.raises(ValueError, match="weight_norm of 'weight' not found"):
        nn.utils.remove_weight_norm(net)


def test_spectral_norm_by_a_hook():
    net = nn.utils.spectral_norm(layer(), n_power_iterations=20)
    assert list(net.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
    assert net.state_dict()._metadata[""]["spectral_norm"] == {"weight.version": 1}
    net(plimsoll.ones(1, 3))
    # The largest singular value of the matrix.
    assert plimsoll.allclose(net.weight_orig / net.weight, plimsoll.tensor(9.5080), atol=1e-3)
    nn.utils.remove_spectral_norm(net)
    assert list(net.state_dict()) == ["bias", "weight"]


def test_weight_norm_as_a_parametrization():
    net = parametrizations.weight_norm(layer())
    assert list(net.state_dict()) == [
        "bias", "parametrizations.weight.original0", "parametrizations.weight.original1",
    ]  # fmt: skip
    assert near(net.weight, [[1.0, -2.0, 3.0], [-4.0, 5.0, -6.0]])
    net.load_state_dict({"bias": plimsoll.zeros(2), "weight_g": plimsoll.ones(2, 1), "weight_v": plimsoll.ones(2, 3)})
    assert near(net.weight, [[1 / math.sqrt(3)] * 3] * 2)


def test_spectral_norm_as_a_parametrization():
    net = parametrizations.spectral_norm(layer())
    assert list(net.state_dict()) == [
        "bias", "parametrizations.weight.original", "parametrizations.weight.0._u", "parametrizations.weight.0._v",
    ]  # fmt: skip
    assert plimsoll.linalg.norm(net.weight).item() * 9.5080 == pytest.approx(91.0**0.5, rel=1e-4)
    net.eval()
    assert plimsoll.equal(net.weight, net.weight)


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).T


class Doubled(nn.Module):
    def forward(self, x):
        return x * 2

    def right_inverse(self, x):
        return x / 2


class Shorter(nn.Module):
    def forward(self, x):
        return x[:1]


def test_a_parametrized_tensor_is_computed():
    net = nn.Linear(2, 2)
    parametrize.register_parametrization(net, "weight", Symmetric())
    assert type(net).__name__ == "ParametrizedLinear" and isinstance(net, nn.Linear)
    assert net.weight[0, 1].item() == net.weight[1, 0].item()
    assert repr(net) == (
        "ParametrizedLinear(\n"
        "  in_features=2, out_features=2, bias=True\n"
        "  (parametrizations): ModuleDict(\n"
        "    (weight): ParametrizationList(\n"
        "      (0): Symmetric()\n"
        "    )\n"
        "  )\n"
        ")"
    )
    with pytest.raises(RuntimeError, match="parametrization Symmetric does not implement right_inverse"):
        net.weight = plimsoll.ones(2, 2)
    with pytest.raises(Exception, match="only supported through state_dict"):
        pickle.dumps(net)
    again = copy.deepcopy(net)
    assert plimsoll.equal(again.weight, net.weight) and parametrize.is_parametrized(again, "weight")
    original = net.parametrizations.weight.original
    parametrize.remove_parametrizations(net, "weight", leave_parametrized=False)
    assert type(net) is nn.Linear and net.weight is original
    assert not parametrize.is_parametrized(net)


def test_parametrizations_with_inverses_stack():
    net = layer()
    parametrize.register_parametrization(net, "weight", Doubled())
    assert near(net.parametrizations.weight.original[0], [0.5, -1.0, 1.5])
    parametrize.register_parametrization(net, "weight", Doubled())
    assert near(net.weight[0], [2.0, -4.0, 6.0])
    assert near(net.parametrizations.weight.original[0], [0.5, -1.0, 1.5])
    net.weight = plimsoll.ones(2, 3)
    assert near(net.parametrizations.weight.original[0], [0.25, 0.25, 0.25])
    with parametrize.cached():
        assert net.weight is net.weight
    assert net.weight is not net.weight
    parametrize.remove_parametrizations(net, "weight")
    assert near(net.weight[0], [1.0, 1.0, 1.0]) and isinstance(net.weight, nn.Parameter)
    assert parametrize.type_before_parametrizations(net) is nn.Linear


def test_parametrizations_that_do_not_fit():
    with pytest.raises(ValueError, match="may not change the shape of the tensor"):
        parametrize.register_parametrization(layer(), "weight", Shorter())
    with pytest.raises(ValueError, match="does not have a parameter, a buffer, or a parametrized element"):
        parametrize.register_parametrization(layer(), "nothing", Doubled())
    with pytest.raises(ValueError, match="does not have a parametrization on weight"):
        parametrize.remove_parametrizations(layer(), "weight")
    net = parametrize.register_parametrization(layer(), "weight", Shorter(), unsafe=True)
    assert net.weight.shape == (1, 3)


def test_the_smallest_weights_are_pruned():
    net = prune.l1_unstructured(layer(), "weight", 2)
    assert list(net.state_dict()) == ["bias", "weight_orig", "weight_mask"]
    assert net.weight_mask.tolist() == [[0.0, 0.0, 1.0], [1.0, 1.0, 1.0]]
    assert net.weight.tolist() == [[0.0, 0.0, 3.0], [-4.0, 5.0, -6.0]]
    net(plimsoll.ones(1, 3)).sum().backward()
    assert net.weight_orig.grad.tolist() == [[0.0, 0.0, 1.0], [1.0, 1.0, 1.0]]
    assert prune.is_pruned(net)
    # A second time it prunes of what is left.
    prune.l1_unstructured(net, "weight", 0.5)
    assert net.weight_mask.tolist() == [[0.0, 0.0, 0.0], [0.0, 1.0, 1.0]]
    assert len(next(iter(net._forward_pre_hooks.values()))) == 2
    prune.remove(net, "weight")
    assert list(net.state_dict()) == ["bias", "weight"] and not prune.is_pruned(net)
    assert net.weight.tolist() == [[0.0, 0.0, 0.0], [0.0, 5.0, -6.0]] and isinstance(net.weight, nn.Parameter)


def test_channels_are_pruned():
    net = prune.ln_structured(layer(), "weight", 1, n=2, dim=0)
    assert net.weight_mask.tolist() == [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
    prune.ln_structured(net, "weight", 1, n=1, dim=1)
    assert net.weight_mask.tolist() == [[0.0, 0.0, 0.0], [0.0, 1.0, 1.0]]
    drawn = prune.random_structured(layer(), "weight", 2, dim=1).weight_mask
    assert sorted(drawn.sum(0).tolist()) == [0.0, 0.0, 2.0]
    assert prune.random_unstructured(layer(), "weight", 0.5).weight_mask.sum().item() == 3.0


def test_pruning_over_several_modules():
    one, other = layer(), layer()
    with plimsoll.no_grad():
        other.weight.mul_(10)
    prune.global_unstructured([(one, "weight"), (other, "weight")], prune.L1Unstructured, amount=6)
    assert one.weight_mask.sum().item() == 0.0 and other.weight_mask.sum().item() == 6.0
    scored = prune.l1_unstructured(layer(), "bias", 1, importance_scores=plimsoll.tensor([5.0, 9.0]))
    assert scored.bias_mask.tolist() == [0.0, 1.0]
    masked = prune.custom_from_mask(layer(), "bias", plimsoll.tensor([0, 1]))
    assert masked.bias.tolist() == [0.0, -0.5]
    assert prune.identity(layer(), "bias").bias_mask.tolist() == [1.0, 1.0]
    assert prune.L1Unstructured(1).prune(plimsoll.tensor([1.0, -2.0])).tolist() == [0.0, -2.0]


def test_what_cannot_be_pruned_is_left_as_it_is():
    net = layer()
    for amount, error in ((2.0, ValueError), (20, ValueError), ("a", TypeError), (-1, ValueError)):
        with pytest.raises(error):
            prune.l1_unstructured(net, "weight", amount)
    with pytest.raises(ValueError, match="Structured pruning can only be applied to multidimensional tensors"):
        prune.ln_structured(net, "bias", 1, 2, 0)
    with pytest.raises(IndexError, match="Invalid index 5"):
        prune.ln_structured(net, "weight", 1, 2, 5)
    with pytest.raises(AttributeError):
        prune.l1_unstructured(net, "nothing", 1)
    with pytest.raises(ValueError, match="has to be pruned before pruning can be removed"):
        prune.remove(net, "weight")
    assert list(layer().state_dict()) == ["weight", "bias"]


def sequences():
    return [plimsoll.tensor([1.0, 2.0]), plimsoll.tensor([3.0, 4.0, 5.0]), plimsoll.tensor([6.0])]


def test_sequences_are_packed_and_padded():
    packed = pack_sequence(sequences(), enforce_sorted=False)
    assert packed.data.tolist() == [3.0, 1.0, 6.0, 4.0, 2.0, 5.0]
    assert packed.batch_sizes.tolist() == [3, 2, 1]
    assert packed.sorted_indices.tolist() == [1, 0, 2] and packed.unsorted_indices.tolist() == [1, 0, 2]
    padded, lengths = pad_packed_sequence(packed, batch_first=True, padding_value=-1.0)
    assert padded.tolist() == [[1.0, 2.0, -1.0], [3.0, 4.0, 5.0], [6.0, -1.0, -1.0]]
    assert lengths.tolist() == [2, 3, 1]
    assert [one.tolist() for one in unpack_sequence(packed)] == [[1.0, 2.0], [3.0, 4.0, 5.0], [6.0]]
    assert pad_packed_sequence(packed, total_length=5)[0].shape == (5, 3)
    assert isinstance(packed, PackedSequence) and packed.double().data.dtype == plimsoll.float64
    left = pad_sequence(sequences(), batch_first=True, padding_side="left")
    assert left.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [0.0, 0.0, 6.0]]
    assert unpad_sequence(padded, lengths, batch_first=True)[2].tolist() == [6.0]
    with pytest.raises(RuntimeError, match="`lengths` array must be sorted in decreasing order"):
        pack_padded_sequence(padded, [2, 3, 1], batch_first=True)
    with pytest.raises(RuntimeError, match="Length of all samples has to be greater than 0"):
        pack_padded_sequence(padded, [2, 1, 0], batch_first=True)
    with pytest.raises(ValueError, match="Expected total_length to be at least the length of the longest sequence"):
        pad_packed_sequence(packed, total_length=2)


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_a_packed_batch_is_each_sequence_by_itself(kind):
    net = kind(2, 3, num_layers=2, bidirectional=True)
    given = [plimsoll.randn(size, 2, requires_grad=True) for size in (2, 4, 1)]
    output, state = net(pack_sequence(given, enforce_sorted=False))
    hidden = state[0] if kind is nn.LSTM else state
    for at, (one, part) in enumerate(zip(given, unpack_sequence(output))):
        alone, last = net(one)
        assert plimsoll.allclose(alone, part, atol=1e-6)
        assert plimsoll.allclose(last[0] if kind is nn.LSTM else last, hidden[:, at], atol=1e-6)
    output.data.sum().backward()
    assert all(one.grad is not None and one.grad.shape == one.shape for one in given)


def test_layers_are_made_and_joined():
    made = nn.utils.skip_init(nn.Linear, 2, 3)
    assert type(made) is nn.Linear and made.weight.shape == (3, 2)
    conv, norm = nn.Conv2d(2, 3, 3).eval(), nn.BatchNorm2d(3).eval()
    norm.running_mean.copy_(plimsoll.tensor([1.0, 2.0, 3.0]))
    norm.running_var.copy_(plimsoll.tensor([4.0, 5.0, 6.0]))
    x = plimsoll.randn(1, 2, 5, 5)
    assert plimsoll.allclose(nn.utils.fuse_conv_bn_eval(conv, norm)(x), norm(conv(x)), atol=1e-5)


@pytest.mark.parametrize("trivialization", [True, False])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
@pytest.mark.parametrize("named", ["matrix_exp", "cayley", "householder", None])
def test_orthogonal_weights_stay_so(named, shape, trivialization):
    plimsoll.manual_seed(0)
    net = nn.Linear(shape[1], shape[0], dtype=plimsoll.float64)
    parametrizations.orthogonal(net, orthogonal_map=named, use_trivialization=trivialization)

    def product():
        return net.weight.mT @ net.weight if shape[0] >= shape[1] else net.weight @ net.weight.mT

    few = plimsoll.eye(min(shape), dtype=plimsoll.float64)
    keys = ["bias", "parametrizations.weight.original", "parametrizations.weight.0.base"]
    assert list(net.state_dict()) == keys[: 3 if trivialization else 2]
    optimizer = plimsoll.optim.SGD(net.parameters(), lr=0.5)
    before = net.weight.detach().clone()
    for _ in range(3):
        assert plimsoll.allclose(product(), few, atol=1e-12)
        optimizer.zero_grad()
        (net(plimsoll.ones(2, shape[1], dtype=plimsoll.float64)) - 1).square().sum().backward()
        optimizer.step()
    assert not plimsoll.allclose(net.weight, before)
    if not trivialization and (named in ("matrix_exp", "cayley") or (named is None and shape == (4, 4))):
        with pytest.raises(NotImplementedError, match="not possible to assign"):
            net.weight = before
        return
    # What was orthogonal already is taken as it is.
    net.weight = before
    assert plimsoll.allclose(net.weight, before)


@pytest.mark.parametrize(
    ("named", "weight", "grad"),
    [
        ("matrix_exp", [[-0.4794255, -0.8775826], [0.8775826, -0.4794255]], [[0.0, 0.0], [-0.8775826, 0.0]]),
        ("cayley", [[-0.4705882, -0.8823529], [0.8823529, -0.4705882]], [[0.0, 0.0], [-0.8304498, 0.0]]),
        ("householder", [[-0.8, -0.6], [0.6, -0.8]], [[0.0, 0.0], [-0.96, 0.0]]),
    ],
)
def test_orthogonal_weights_are_pytorchs(named, weight, grad):
    net = nn.Linear(2, 2, bias=False)
    with plimsoll.no_grad():
        net.weight.copy_(plimsoll.tensor([[0.0, -1.0], [1.0, 0.0]]))
    parametrizations.orthogonal(net, orthogonal_map=named)
    original = net.parametrizations.weight.original
    with plimsoll.no_grad():
        original[1, 0] = 0.5
    net.weight[0, 0].backward()
    assert plimsoll.allclose(net.weight, plimsoll.tensor(weight), atol=1e-6)
    assert plimsoll.allclose(original.grad, plimsoll.tensor(grad), atol=1e-6)


def test_what_cannot_be_orthogonal_is_refused():
    net = nn.Linear(2, 2)
    for given, says in [({"name": "bias"}, "1 dimensions"), ({"name": "q"}, "'q'"), ({"orthogonal_map": "z"}, "Got: z")]:
        with pytest.raises(ValueError, match=says):
            parametrizations.orthogonal(net, **given)
    parametrizations.orthogonal(net)
    with pytest.raises(ValueError, match="Got a tensor of shape"):
        net.weight = plimsoll.ones(3, 3)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 2, bias=False)
        self.second = nn.Linear(2, 2, bias=False)
        self.second.weight = self.first.weight

    def forward(self, x, times=1):
        return self.second(self.first(x)) * times


def test_a_module_is_a_function_of_its_parameters():
    call, net, x = plimsoll.func.functional_call, layer(), plimsoll.ones(1, 3)
    own = net.weight
    weight = plimsoll.eye(2, 3, requires_grad=True)
    result = call(net, {"weight": weight}, x)
    assert result.tolist() == [[1.5, 0.5]]
    result.sum().backward()
    assert weight.grad.tolist() == [[1.0] * 3] * 2 and own.grad is None and net.weight is own
    assert call(net, [{"weight": weight}, {"bias": plimsoll.zeros(2)}], (x,), {}).tolist() == [[1.0, 1.0]]
    assert call(net, {"nowhere": weight}, x).equal(net(x))
    with pytest.raises(RuntimeError, match="Unexpected key.*'nowhere'(.|\n)*Missing key.*'bias'"):
        call(net, {"weight": weight, "nowhere": weight}, x, strict=True)
    for wrong in [3, [3], [{"weight": weight}, {"weight": weight}]]:
        with pytest.raises(ValueError, match="dict"):
            call(net, wrong, x)
    with pytest.raises(RuntimeError, match="multiply"):
        call(net, {"weight": plimsoll.ones(2, 7)}, x)
    assert net.weight is own, "also after an error"


def test_tied_parameters_are_replaced_under_all_names():
    call, net, x = plimsoll.func.functional_call, Tied(), plimsoll.ones(1, 2)
    two = 2 * plimsoll.eye(2)
    for name in ["first.weight", "second.weight"]:
        assert call(net, {name: two}, x, {"times": 3}).tolist() == [[12.0, 12.0]]
    apart = call(net, {"first.weight": two, "second.weight": 3 * plimsoll.eye(2)}, x, tie_weights=False)
    assert apart.tolist() == [[6.0, 6.0]]
    with pytest.raises(ValueError, match="which are tied"):
        call(net, {"first.weight": two, "second.weight": two.clone()}, x)
    buffers = {name: buffer.clone() for name, buffer in nn.BatchNorm1d(2).named_buffers()}
    norm = nn.BatchNorm1d(2)
    call(norm, buffers, plimsoll.tensor([[0.0, 2.0], [2.0, 4.0]]))
    assert buffers["num_batches_tracked"].item() == 1 and buffers["running_mean"].allclose(plimsoll.tensor([0.1, 0.3]))
    assert norm.num_batches_tracked.item() == 0 and norm.running_mean.tolist() == [0.0, 0.0]


def test_clipping_an_empty_generator_is_warned_of():
    with pytest.warns(UserWarning, match="`parameters` is an empty generator, no gradient clipping will occur") as said:
        assert nn.utils.clip_grad_norm_((one for one in ()), 1.0).item() == 0.0
    assert [one.filename for one in said] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nn.utils.clip_grad_norm_([], 1.0)


def test_a_packed_sequence_is_not_told_to_copy():
    packed = pack_sequence([plimsoll.ones(2)])
    with pytest.raises(RuntimeError, match="does not accept copy argument"):
        packed.to("cpu", copy=True)
    assert packed.to("cpu", copy=False) is packed


def test_sequences_that_were_padded_are_copies():
    padded = plimsoll.zeros(2, 3)
    first, second = unpad_sequence(padded, plimsoll.tensor([3, 1]), batch_first=True)
    first.fill_(1)
    second.fill_(1)
    assert padded.sum().item() == 0 and second.shape == (1,)


def test_lengths_of_padded_sequences_are_numbers_that_places_are_below():
    padded = plimsoll.arange(12.0).reshape(3, 4)

    def parts(lengths, batch_first=True, of=padded):
        return [part.tolist() for part in unpad_sequence(of, lengths, batch_first)]

    assert parts(plimsoll.tensor([4, -1, 9])) == [[0.0, 1.0, 2.0, 3.0], [], [8.0, 9.0, 10.0, 11.0]]
    assert parts(plimsoll.tensor([4.0, 1.5, math.nan])) == [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0], []]
    assert parts(plimsoll.tensor([[4], [1], [0]])) == [[0.0, 1.0, 2.0, 3.0], [4.0], []]
    assert parts(plimsoll.tensor([1, 3, 0, 2]), False) == [[0.0], [1.0, 5.0, 9.0], [], [3.0, 7.0]]
    assert padded.shape == (3, 4)
    deep = plimsoll.arange(12.0).reshape(2, 3, 2)
    assert parts(plimsoll.tensor([1, 2]), of=deep) == [[[0.0, 1.0]], [[6.0, 7.0], [8.0, 9.0]]]
    assert parts(plimsoll.tensor([1, 0, 2]), of=padded.to(plimsoll.stand_in())) == [[0.0], [], [8.0, 9.0]]
    for lengths, batch_first in (([4, 1], True), ([4, 1, 2, 3], True), ([1, 2, 3], False)):
        with pytest.raises(ValueError, match=r"zip\(\) argument 2 is (shorter|longer) than argument 1"):
            parts(plimsoll.tensor(lengths), batch_first)
    with pytest.raises(TypeError):
        parts(plimsoll.tensor(4))
    x = plimsoll.ones(2, 3, requires_grad=True)
    first, second = unpad_sequence(x, plimsoll.tensor([2, -1]), batch_first=True)
    (first.sum() + 2 * second.sum()).backward()
    assert x.grad.tolist() == [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
