"""What is often said about the memory of training, in bytes. Where the saying is wrong, the test says what is true instead.

Sizes are multiples of 512 bytes, the allocator's unit, so that every sum can be made by hand. How checkpoints peak is in
`crates/tensor/tests/checkpoint_bytes.rs`; more sayings run as blocks of `docs/guide/what-pytorch-really-does.md`."""

import gc
import weakref

import plimsoll as pm
import pytest
from plimsoll import nn
from plimsoll.nn import functional as F
from plimsoll.nn.utils import prune
from plimsoll.utils.checkpoint import checkpoint

ONE = 512  # a tensor of one number takes as much as the allocator's unit


class Book:
    """A device of its own, and how many bytes are held there beyond those at the start."""

    def __init__(self):
        self.device = pm.private_cpu()
        self.start = 0

    def begin(self):
        self.start = pm.memory_allocated(self.device)
        pm.reset_peak_memory_stats(self.device)

    @property
    def held(self):
        return pm.memory_allocated(self.device) - self.start

    @property
    def peak(self):
        return pm.max_memory_allocated(self.device) - self.start


@pytest.fixture
def book():
    return Book()


def room(book, layer, x):
    """Bytes that a linear layer takes to work in, beside its result."""
    with pm.no_grad():
        book.begin()
        result = layer(x)
        return book.peak - result.nbytes


def perceptron(device, layers=3, width=256):
    parts = [part for _ in range(layers) for part in (nn.Linear(width, width), nn.Tanh())]
    return nn.Sequential(*parts).to(device)


# Losses


def test_losses_kept_as_numbers_cost_nothing(book):
    w = pm.ones(1024, device=book.device, requires_grad=True)
    book.begin()
    losses = []
    for _ in range(10):
        loss = w.exp().sum()
        losses.append(loss.item())
        del loss
        assert book.held == 0
    assert len(losses) == 10


def test_losses_kept_after_backward_cost_themselves(book):
    # Not the whole graph: backward frees what it saved, and nodes without tensors stay.
    w = pm.ones(1024, device=book.device, requires_grad=True)
    w.sum().backward()
    book.begin()
    losses = []
    for step in range(1, 11):
        loss = w.exp().sum()
        loss.backward()
        losses.append(loss)
        assert book.held == step * ONE


def test_losses_kept_without_backward_keep_what_was_saved(book):
    w = pm.ones(1024, device=book.device, requires_grad=True)
    book.begin()
    losses = []
    for step in range(1, 11):
        losses.append(w.exp().sum())  # exp keeps its result
        assert book.held == step * (ONE + 4096)
    losses = [loss.item() for loss in losses]
    assert book.held == 0


def test_a_running_total_of_losses(book):
    # The total of tensors keeps one graph of all steps, which holds bytes only if backward has not run.
    w = pm.ones(1024, device=book.device, requires_grad=True)
    w.sum().backward()
    book.begin()
    for backward, a_step in ((True, 0), (False, 4096)):
        total = pm.zeros((), device=book.device)
        for step in range(1, 6):
            loss = w.exp().sum()
            if backward:
                loss.backward()
            total = total + loss
            del loss
            assert book.held == ONE + step * a_step
        del total
        assert book.held == 0


# Hidden states


def test_a_hidden_state_that_is_chained_keeps_every_step(book):
    w = pm.eye(64, device=book.device).requires_grad_()
    start = pm.ones(32, 64, device=book.device)
    a_state = 32 * 64 * 4
    book.begin()
    h = start
    for step in range(1, 9):
        h = (h @ w).tanh()  # tanh keeps its result, which the next product needs too
        assert book.held == step * a_state
    del h
    assert book.held == 0
    h = start
    for _ in range(8):
        h = (h @ w).tanh().detach()
        assert book.held == a_state


def test_a_chained_state_with_backward_is_an_error_and_no_leak(book):
    w = pm.eye(64, device=book.device).requires_grad_()
    h = (pm.ones(32, 64, device=book.device) @ w).tanh()
    h.sum().backward()
    h = (h @ w).tanh()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        h.sum().backward()


def test_the_state_of_an_lstm_is_a_tuple(book):
    lstm = nn.LSTM(64, 64).to(book.device)
    x = pm.ones(16, 8, 64, device=book.device)
    _, state = lstm(x)
    with pytest.raises(AttributeError):
        state.detach()
    state = _ = None
    book.begin()
    for _ in range(3):
        _, state = lstm(x, state)
        state = tuple(part.detach() for part in state)
        del _
        assert book.held == 2 * 8 * 64 * 4  # h and c of one layer, and nothing behind them


# Evaluation


@pytest.mark.parametrize("mode", [pm.no_grad, pm.inference_mode])
def test_evaluation_without_recording_keeps_the_result_alone(book, mode):
    model = perceptron(book.device)
    x = pm.ones(64, 256, device=book.device)
    activation = 64 * 256 * 4
    work = room(book, model[0], x)
    book.begin()
    y = model(x)
    assert book.held == 3 * activation  # each tanh keeps its result; the last one is `y`
    # In the last layer: two results of tanh, the product, and what follows or what that takes.
    assert book.peak == 3 * activation + max(work, activation)
    del y
    book.begin()
    with mode():
        y = model(x)
    assert book.held == activation
    # What goes into a layer, and what comes out: the layers before are gone.
    assert book.peak == 2 * activation + work
    assert not y.requires_grad


def test_no_grad_saves_nothing_for_one_linear_layer(book):
    # It keeps its input and its weight, which are there anyway.
    layer = nn.Linear(256, 256).to(book.device)
    x = pm.ones(64, 256, device=book.device)
    book.begin()
    recorded = layer(x)
    assert book.held == 64 * 256 * 4
    del recorded
    with pm.no_grad():
        plain = layer(x)
    assert book.held == 64 * 256 * 4
    del plain


def test_inference_tensors_do_not_enter_graphs():
    with pm.inference_mode():
        x = pm.ones(4)
        assert (x.view(2, 2) + 1).sum().item() == 8.0  # views and operations are fine
    w = pm.ones(4, requires_grad=True)
    with pytest.raises(RuntimeError, match="(?i)inference"):
        (w * x).sum().backward()


# Views, writing in place, buffers


def test_a_slice_keeps_its_whole_storage(book):
    book.begin()
    x = pm.zeros(64, 1024, device=book.device)
    row = x[0]
    assert book.held == 64 * 4096
    del x
    assert book.held == 64 * 4096  # ten rows or one: the storage is one
    assert (row.nbytes, row.untyped_storage().nbytes()) == (4096, 64 * 4096)
    row = row.clone()
    assert book.held == 4096


def test_in_place_takes_no_second_tensor(book):
    x = pm.ones(1024, 64, device=book.device)
    size = x.nbytes
    book.begin()
    x.add_(1).mul_(2).tanh_()
    assert (book.held, book.peak) == (0, 0)
    x = x.add(1).mul(2).tanh()
    assert book.held == 0  # the old one is gone again
    assert book.peak == 2 * size  # two results at a time beside the old one


def test_an_activation_in_place_lowers_the_peak_and_not_what_is_kept(book):
    # relu keeps its result; in place that is the memory of what came before.
    x = pm.ones(64, 256, device=book.device)
    scale = pm.ones(256, device=book.device, requires_grad=True)
    activation = x.nbytes
    for inplace, peak in ((False, 2), (True, 1)):
        book.begin()
        y = F.relu(x * scale, inplace=inplace)
        assert (book.held, book.peak) == (activation, peak * activation)
        y.sum().backward()  # it trains
        assert scale.grad.tolist() == [64.0] * 256
        scale.grad = None
        del y


def test_preallocated_buffers(book):
    x = pm.ones(64, 1024, device=book.device)
    buffer = pm.empty(64, 1024, device=book.device)
    book.begin()
    for _ in range(5):
        pm.add(x, 1, out=buffer)
        pm.mul(buffer, 2, out=buffer)
    assert (book.held, book.peak) == (0, 0)
    x.requires_grad_()
    with pytest.raises(RuntimeError, match="out="):
        pm.add(x, 1, out=buffer)
    x.requires_grad_(False)
    # Rows collected in a list are in memory twice while they are stacked; rows of a buffer once.
    book.begin()
    rows = [x[at] * 2 for at in range(64)]
    stacked = pm.stack(rows)
    assert book.peak == 2 * x.nbytes
    del rows, stacked
    book.begin()
    for at in range(64):
        pm.mul(x[at], 2, out=buffer[at])
    assert (book.held, book.peak) == (0, 0)


def test_chunks_bound_what_is_between(book):
    x = pm.ones(64, 1024, device=book.device)
    book.begin()
    y = x.exp().sin().exp()
    assert (book.held, book.peak) == (x.nbytes, 2 * x.nbytes)
    del y
    book.begin()
    out = pm.empty_like(x)
    for at in range(0, 64, 8):
        out[at : at + 8].copy_(x[at : at + 8].exp().sin().exp())
    assert (book.held, book.peak) == (x.nbytes, x.nbytes + 2 * x.nbytes // 8)


# Checkpoints


def test_checkpoints_of_linear_layers(book):
    # PyTorch's bytes of the same programs: 768,000, 768,000, 1,280,000 and 256,000.
    x = pm.ones(64, 1000, device=book.device)
    activation = 256_000
    linear = nn.Sequential(*(nn.Linear(1000, 1000) for _ in range(3))).to(book.device)
    mixed = nn.Sequential(linear[0], nn.ReLU(), linear[1], nn.ReLU(), linear[2])

    def each(modules):
        y = x
        for module in modules:
            y = checkpoint(module, y, use_reentrant=False)
        return y

    programs = [
        (lambda: linear(x), 3),
        (lambda: each(linear), 3),  # a layer's input is what it keeps anyway
        (lambda: mixed(x), 3),
        (lambda: each(mixed), 5),  # worse: now relu keeps its input and linear its own
        (lambda: checkpoint(mixed, x, use_reentrant=False), 1),
        (lambda: checkpoint(mixed, x.detach().requires_grad_(), use_reentrant=True), 1),
    ]
    for program, activations in programs:
        book.begin()
        y = program()
        assert book.held == activations * activation
        y.sum().backward()
        del y
        linear.zero_grad()


def test_checkpoints_of_a_perceptron(book):
    model = perceptron(book.device, layers=6)
    x = pm.ones(64, 256, device=book.device)
    activation = x.nbytes
    book.begin()
    loss = model(x).sum()
    assert book.held == 6 * activation + ONE
    assert pm.memory_by_kind(book.device)["activation"] >= 6 * activation
    loss.backward()
    plain = [param.grad.tolist() for param in model.parameters()]
    model.zero_grad()
    del loss
    book.begin()
    y = x
    for at in range(0, 12, 4):  # two layers each
        y = checkpoint(model[at : at + 4], y, use_reentrant=False)
    loss = y.sum()
    del y
    assert book.held == 2 * activation + ONE  # what goes into the second and the third pair
    loss.backward()
    assert [param.grad.tolist() for param in model.parameters()] == plain


class Block(nn.Module):
    """Attention and a perceptron, each behind a normalization."""

    def __init__(self, width=64, heads=2):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        normal = self.norm1(x)
        parts = (layer(normal) for layer in (self.query, self.key, self.value))
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.narrow(F.gelu(self.wide(self.norm2(x))))


def test_checkpoints_of_a_transformer(book):
    blocks = nn.Sequential(Block(), Block()).to(book.device)
    x = pm.rand(2, 64, 64, device=book.device, requires_grad=True)
    t = x.nbytes
    # Both normalizations' results; queries, keys, values; what attention gives; the sum behind it;
    # and, four times as wide, what gelu takes and gives.
    wide = (2 + 3 + 1 + 1 + 2 * 4) * t
    # A mean and a deviation for each of 128 rows, twice; a number for each row of both heads.
    narrow = 4 * 512 + 1024
    book.begin()
    loss = blocks(x).sum()
    assert book.held == 2 * (wide + narrow) + t + ONE  # and the first block's result
    del loss
    y = x
    for block in blocks:
        y = checkpoint(block, y, use_reentrant=False)
    loss = y.sum()
    del y
    assert book.held == t + ONE


# Gradients, and what is deleted when


def test_set_to_none_frees_the_gradients(book):
    model = perceptron(book.device, layers=2)
    parameters = sum(param.nbytes for param in model.parameters())
    optimizer = pm.optim.SGD(model.parameters(), lr=0.1)
    x = pm.ones(8, 256, device=book.device)
    book.begin()
    model(x).sum().backward()
    assert book.held == parameters  # a gradient each
    optimizer.zero_grad(set_to_none=False)
    assert book.held == parameters
    assert model[0].weight.grad.abs().sum().item() == 0.0
    optimizer.zero_grad()  # None by default
    assert book.held == 0
    assert model[0].weight.grad is None


def test_gradients_that_are_not_zeroed_add_up_in_place(book):
    # A wrong gradient, and no leak.
    w = pm.ones(1024, device=book.device, requires_grad=True)
    book.begin()
    for step in range(1, 6):
        w.sum().backward()
        assert (book.held, w.grad[0].item()) == (4096, float(step))


def test_deleting_before_backward(book):
    # No error: the graph keeps what its backward needs, and nothing else.
    w = pm.ones(256, 256, device=book.device, requires_grad=True)
    x = pm.ones(64, 256, device=book.device)
    activation = 64 * 256 * 4
    book.begin()
    h = x @ w
    y = h + 1  # needs neither
    loss = y.sum()
    assert book.held == 2 * activation + ONE
    del h
    assert book.held == activation + ONE
    del y
    assert book.held == ONE
    del x
    assert book.held == ONE  # the product needs it
    loss.backward()
    assert book.held == 256 * 256 * 4 + ONE - activation  # the gradient is there, and `x` is gone


def test_deleting_scores_before_backward(book):
    # PyTorch's cross entropy keeps a second table, and deleting the scores frees the first. Here the scores are
    # what is kept: one table with or without the name. The mean squared error keeps them in both.
    w = pm.ones(256, 512, device=book.device, requires_grad=True)
    x = pm.ones(64, 256, device=book.device)
    labels = pm.zeros(64, dtype=pm.int64, device=book.device)
    target = pm.zeros(64, 512, device=book.device)
    table = 64 * 512 * 4
    for function, wanted in ((F.cross_entropy, labels), (F.mse_loss, target)):
        book.begin()
        scores = x @ w
        loss = function(scores, wanted)
        with_name = book.held
        assert table + ONE <= with_name < table + table // 2
        del scores
        assert book.held == with_name
        loss.backward()
        assert book.held == w.nbytes + ONE  # backward freed it
        del loss
        w.grad = None


def test_backward_frees_what_was_saved(book):
    w = pm.ones(1024, device=book.device, requires_grad=True)
    w.sum().backward()
    book.begin()
    y = w.exp().exp()
    loss = y.sum()
    assert book.held == 2 * 4096 + ONE
    loss.backward()
    assert book.held == 4096 + ONE  # `y` has a name
    del y
    assert book.held == ONE
    loss = w.exp().exp().sum()
    loss.backward(retain_graph=True)
    assert book.held == 2 * 4096 + ONE
    del loss
    assert book.held == 0


def test_detaching_and_copying_away_free_nothing(book):
    w = pm.ones(1024, device=book.device, requires_grad=True)
    book.begin()
    y = w.exp()
    other = y.detach()
    assert other.data_ptr() == y.data_ptr() and book.held == 4096
    host = y.cpu()
    assert book.held == 4096
    pm.empty_cache(book.device)
    assert book.held == 4096
    del y
    assert book.held == 4096  # `other` is the same memory
    del other
    assert book.held == 4096  # the copy on the host has a graph, and exp keeps its result there
    host = host.detach()
    assert book.held == 0


def test_only_cycles_wait_for_the_collector(book):
    class Holder:
        pass

    gc.disable()
    try:
        book.begin()
        x = pm.ones(1024, device=book.device)
        seen = weakref.ref(x)
        del x
        assert (book.held, seen()) == (0, None)
        holder = Holder()
        holder.own, holder.x = holder, pm.ones(1024, device=book.device)
        del holder
        assert book.held == 4096
        gc.collect()
        assert book.held == 0
    finally:
        gc.enable()


# Pruning, precision, normalization, dropout


def test_pruning_takes_memory(book):
    # Three times the weight: what it was, the mask, and the product. Nothing is saved by zeros.
    layer = nn.Linear(256, 256, bias=False).to(book.device)
    weight = 256 * 256 * 4
    assert pm.memory_allocated(book.device) == weight
    prune.l1_unstructured(layer, "weight", amount=0.9)
    gc.collect()
    assert pm.memory_allocated(book.device) == 3 * weight
    assert (layer.weight_orig.nbytes, layer.weight_mask.nbytes, layer.weight.nbytes) == (weight,) * 3
    prune.remove(layer, "weight")
    gc.collect()
    assert pm.memory_allocated(book.device) == weight
    assert (layer.weight == 0).float().mean().item() == pytest.approx(0.9, abs=1e-4)


@pytest.mark.parametrize("dtype", [pm.float16, pm.bfloat16])
def test_half_precision_halves_parameters_activations_and_gradients(book, dtype):
    model = perceptron(book.device, layers=2)
    x = pm.ones(64, 256, device=book.device)
    parameters = sum(param.nbytes for param in model.parameters())
    assert pm.memory_allocated(book.device) == parameters + x.nbytes
    model.to(dtype)
    x = x.to(dtype)
    assert pm.memory_allocated(book.device) == (parameters + 64 * 256 * 4) // 2
    book.begin()
    loss = model(x).sum()
    assert book.held == 2 * 64 * 256 * 2 + ONE
    loss.backward()
    assert book.held == parameters // 2 + ONE


def test_autocast_of_a_small_batch_takes_more_memory(book):
    # The cast of a weight is kept for the gradient of its layer's input, and is larger than what halving a few rows saves.
    # Of the first layer it is not, for nobody wants the gradient of `x`.
    model = nn.Sequential(nn.Linear(256, 256, bias=False), nn.Tanh(), nn.Linear(256, 256, bias=False)).to(book.device)
    x = pm.ones(4, 256, device=book.device)
    rows = x.nbytes
    book.begin()
    y = model(x)
    assert book.held == 2 * rows  # what tanh gives, and `y`
    del y
    with pm.autocast("cpu", dtype=pm.bfloat16):
        y = model(x)
    assert y.dtype == pm.bfloat16
    assert book.held == 256 * 256 * 2 + 3 * rows // 2  # the second weight; `x`, what tanh gives, and `y`


def test_normalizations_keep_two_numbers_a_row_or_a_channel(book):
    # Between the two kinds there is no real difference: 8,192 bytes and 8,000, which is rounded to the same.
    x = pm.rand(1024, 1000, device=book.device, requires_grad=True)
    for layer in (nn.LayerNorm(1000), nn.BatchNorm1d(1000)):
        layer = layer.to(book.device)
        book.begin()
        y = layer(x)
        assert book.held == y.untyped_storage().nbytes() + 8192
        del y


def test_batch_norm_in_training_and_in_evaluation(book):
    layer = nn.BatchNorm1d(128).to(book.device)
    x = pm.rand(512, 128, device=book.device, requires_grad=True)
    book.begin()
    y = layer(x)
    assert book.held == x.nbytes + 2 * 512  # the batch's own mean and deviation
    del y
    layer.eval()
    y = layer(x)
    assert book.held == x.nbytes  # the running ones are there already
    del y
    # Who owns `x` alone loses it in training and not in evaluation, once the weights are frozen.
    layer.requires_grad_(False)
    for training, kept in ((True, 2), (False, 1)):
        layer.train(training)
        book.begin()
        y = layer(x * 1.0)
        assert book.held == kept * x.nbytes + (2 * 512 if training else 0)
        del y


def test_dropout_in_training_and_in_evaluation(book):
    layer = nn.Dropout(0.5)
    x = pm.ones(512, 128, device=book.device, requires_grad=True)
    book.begin()
    y = layer(x)
    # PyTorch keeps a mask. Here backward draws the same numbers again, and nothing is kept but `y`.
    assert book.held == x.nbytes
    y.sum().backward()
    assert (x.grad * x == y).all().item()
    x.grad = None
    del y
    layer.eval()
    y = layer(x)
    assert y is x or y.data_ptr() == x.data_ptr()
    assert book.held == 0
