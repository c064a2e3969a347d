"""Recurrent layers, attention of several heads, sampling by grids and losses of linear maps, against the same things made of
plain operations."""

import math

import plimsoll
import plimsoll.nn.functional as F
import pytest

STEPS, BATCH, INPUTS, HIDDEN = 4, 3, 5, 2


def normal(*sizes):
    return plimsoll.randn(*sizes, dtype=plimsoll.float64).requires_grad_()


def lstm_step(x, h, c, weights):
    i, f, g, o = (x @ weights[0].t() + weights[2] + h @ weights[1].t() + weights[3]).chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def gru_step(x, h, c, weights):
    r, z, n = (x @ weights[0].t() + weights[2]).chunk(3, 1)
    own = (h @ weights[1].t() + weights[3]).chunk(3, 1)
    r, z = (r + own[0]).sigmoid(), (z + own[1]).sigmoid()
    n = (n + r * own[2]).tanh()
    return (1 - z) * n + z * h, c


def tanh_step(x, h, c, weights):
    return (x @ weights[0].t() + weights[2] + h @ weights[1].t() + weights[3]).tanh(), c


CELLS = {"lstm": (4, lstm_step), "gru": (3, gru_step), "rnn_tanh": (1, tanh_step)}


def parameters(gates, layers, directions):
    params = []
    for layer in range(layers):
        width = INPUTS if layer == 0 else HIDDEN * directions
        for _ in range(directions):
            rows = gates * HIDDEN
            params += [normal(rows, width), normal(rows, HIDDEN), normal(rows), normal(rows)]
    return params


def naive(step, x, h0, c0, params, directions):
    last = []
    for place in range(0, len(params) // 4, directions):
        results = []
        for side in range(directions):
            h, c = h0[place + side], c0[place + side]
            weights = params[4 * (place + side) : 4 * (place + side) + 4]
            states = [None] * len(x)
            for at in reversed(range(len(x))) if side else range(len(x)):
                h, c = step(x[at], h, c, weights)
                states[at] = h
            results.append(plimsoll.stack(states))
            last.append((h, c))
        x = plimsoll.cat(results, 2)
    return x, plimsoll.stack([h for h, _ in last]), plimsoll.stack([c for _, c in last])


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("directions", [1, 2])
def test_layers_are_what_their_steps_say(name, directions):
    plimsoll.manual_seed(7)
    gates, step = CELLS[name]
    x, params = normal(STEPS, BATCH, INPUTS), parameters(gates, 2, directions)
    h, c = normal(2 * directions, BATCH, HIDDEN), normal(2 * directions, BATCH, HIDDEN)
    hx = (h, c) if name == "lstm" else h
    results = getattr(plimsoll, name)(x, hx, params, True, 2, 0.0, True, directions == 2, False)
    expected = naive(step, x, h, c, params, directions)
    leaves = [x, h, *params] + ([c] if name == "lstm" else [])
    for mine, theirs in zip(results, expected, strict=False):
        assert plimsoll.allclose(mine, theirs, rtol=1e-10, atol=1e-12)
    weights = [plimsoll.randn_like(result) for result in results]
    grads = [
        plimsoll.grad([sum((y * w).sum() for y, w in zip(ys, weights, strict=False))], leaves) for ys in (results, expected)
    ]
    for mine, theirs in zip(*grads, strict=True):
        assert plimsoll.allclose(mine, theirs, rtol=1e-9, atol=1e-11)


def test_packed_sequences_end_where_they_end():
    plimsoll.manual_seed(3)
    params = parameters(4, 1, 1)
    x, h = normal(3, BATCH, INPUTS), normal(1, BATCH, HIDDEN)
    lengths = [3, 2, 1]
    packed = plimsoll.cat([x[0], x[1, :2], x[2, :1]])
    options = (True, 1, 0.0, False, False)
    y, last, cells = plimsoll.lstm(packed, plimsoll.tensor([3, 2, 1]), (h, h), params, *options)
    for index, length in enumerate(lengths):
        alone = plimsoll.lstm(x[:length, index : index + 1], (h[:, index : index + 1],) * 2, params, *options, False)
        assert plimsoll.allclose(last[:, index], alone[1][:, 0])
        assert plimsoll.allclose(cells[:, index], alone[2][:, 0])
    assert y.shape == (6, HIDDEN)
    with pytest.raises(RuntimeError, match="never rise"):
        plimsoll.lstm(packed, plimsoll.tensor([1, 2, 3]), (h, h), params, *options)


def test_wrong_states_and_parameters_are_named():
    x, h, params = normal(STEPS, BATCH, INPUTS), normal(1, BATCH, HIDDEN), parameters(3, 1, 1)
    options = (True, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match="need 4 parameters"):
        plimsoll.gru(x, h, params[:3], *options)
    with pytest.raises(RuntimeError, match="one or more steps"):
        plimsoll.gru(x[:0], h, params, *options)
    with pytest.raises(RuntimeError, match="sequences"):
        plimsoll.gru(x, h[:, :2], params, *options)


def test_layers_are_differentiated_twice():
    x, h, params = normal(STEPS, BATCH, INPUTS), normal(1, BATCH, HIDDEN), parameters(1, 1, 1)
    leaves = [x, h, *params]

    def steps(x, h, *params):
        state, states = h[0], []
        for row in x.unbind(0):
            state = plimsoll.tanh(row @ params[0].t() + params[2] + state @ params[1].t() + params[3])
            states.append(state)
        return plimsoll.stack(states)

    def layer(x, h, *params):
        return plimsoll.rnn_tanh(x, h, list(params), True, 1, 0.0, False, False, False)[0]

    seconds = []
    for run in (layer, steps):
        first = plimsoll.grad([(run(*leaves) ** 2).sum()], leaves, create_graph=True)
        seconds.append(plimsoll.grad([sum((grad**2).sum() for grad in first)], leaves))
    for own, other in zip(*seconds, strict=True):
        assert plimsoll.allclose(own, other)


def test_a_cell_is_one_step():
    x, h, params = normal(BATCH, INPUTS), normal(BATCH, HIDDEN), parameters(1, 1, 1)
    for name, function in (("rnn_tanh_cell", plimsoll.tanh), ("rnn_relu_cell", plimsoll.relu)):
        expected = function(x @ params[0].t() + params[2] + h @ params[1].t() + params[3])
        assert plimsoll.allclose(getattr(plimsoll, name)(x, h, *params), expected)


@pytest.mark.parametrize("need_weights", [True, False])
def test_attention_of_heads_is_attention_of_each(need_weights):
    plimsoll.manual_seed(5)
    width, heads = 4, 2
    query, key, value = normal(3, BATCH, width), normal(5, BATCH, width), normal(5, BATCH, width)
    weight, bias, out = normal(3 * width, width), normal(3 * width), normal(width, width)
    mask = plimsoll.tensor([[False, True, False, False, False]] * 3)
    result, weights = F.multi_head_attention_forward(
        query, key, value, width, heads, weight, bias, None, None, False, 0.0, out, None,
        training=False, need_weights=need_weights, attn_mask=mask,
    )  # fmt: skip
    q, k, v = (F.linear(x, w, b) for x, w, b in zip((query, key, value), weight.chunk(3), bias.chunk(3), strict=True))
    parts = []
    for head in range(heads):
        own = slice(head * width // heads, (head + 1) * width // heads)
        scores = q[..., own].transpose(0, 1) @ k[..., own].transpose(0, 1).transpose(1, 2) / math.sqrt(width // heads)
        probabilities = scores.masked_fill(mask, -math.inf).softmax(-1)
        parts.append((probabilities @ v[..., own].transpose(0, 1)).transpose(0, 1))
    assert plimsoll.allclose(result, F.linear(plimsoll.cat(parts, 2), out), rtol=1e-9, atol=1e-11)
    assert (weights is not None) == need_weights
    if weights is not None:
        assert weights.shape == (BATCH, 3, 5) and plimsoll.allclose(weights[..., 1], plimsoll.zeros(BATCH, 3).double())


def test_the_grid_of_no_change_changes_nothing():
    x = plimsoll.randn(2, 3, 4, 5, dtype=plimsoll.float64)
    same = plimsoll.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]] * 2, dtype=plimsoll.float64)
    for corners in (False, True):
        grid = F.affine_grid(same, [2, 3, 4, 5], align_corners=corners)
        assert grid.shape == (2, 4, 5, 2)
        assert plimsoll.allclose(F.grid_sample(x, grid, align_corners=corners), x, atol=1e-12)
    with pytest.raises(ValueError, match="mode"):
        F.grid_sample(x, grid, mode="linear", align_corners=False)
    with pytest.raises(RuntimeError, match="batch"):
        F.grid_sample(x, grid[:1], align_corners=False)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_the_loss_of_a_linear_map_is_that_of_its_scores(reduction):
    plimsoll.manual_seed(11)
    x, weight, bias = normal(6, 4), normal(7, 4), normal(7)
    target = plimsoll.tensor([0, 3, 6, 2, 2, 5])
    by = dict(reduction=reduction, ignore_index=2, label_smoothing=0.1)
    loss = F.linear_cross_entropy(x, weight, target, linear_bias=bias, **by)
    expected = F.cross_entropy(F.linear(x, weight, bias), target, **by)
    assert plimsoll.allclose(loss, expected, rtol=1e-10)
    leaves = [x, weight, bias]
    theirs = plimsoll.grad([(expected * 3).sum()], leaves)
    again = F.linear_cross_entropy(x, weight, target, linear_bias=bias, **by)
    recorded = plimsoll.grad([(again * 3).sum()], leaves, create_graph=True)
    first = plimsoll.grad([(loss * 3).sum()], leaves)
    for mine, by_graph, other in zip(first, recorded, theirs, strict=True):
        assert plimsoll.allclose(mine, other, rtol=1e-9, atol=1e-12)
        assert plimsoll.allclose(by_graph, other, rtol=1e-9, atol=1e-12)

def test_the_scores_never_exist_whole():
    rows, width, classes = 2048, 8, 50_000
    device = plimsoll.private_cpu()
    x = plimsoll.randn(rows, width, device=device, requires_grad=True)
    weight = plimsoll.randn(classes, width, device=device, requires_grad=True)
    target = plimsoll.zeros(rows, dtype=plimsoll.int64, device=device)
    plimsoll.reset_peak_memory_stats(device)
    before = plimsoll.memory_allocated(device)
    F.linear_cross_entropy(x, weight, target).backward()
    assert plimsoll.max_memory_allocated(device) - before < rows * classes * 4 / 2


def test_the_states_of_an_lstm_cell_are_a_tuple():
    cell = plimsoll.nn.LSTMCell(2, 3)
    with pytest.raises(TypeError, match="'hx' .* must be tuple of Tensors, not Tensor"):
        cell(plimsoll.ones(1, 2), plimsoll.ones(1, 3))
    assert cell(plimsoll.ones(1, 2), (plimsoll.ones(1, 3), plimsoll.ones(1, 3)))[0].shape == (1, 3)
