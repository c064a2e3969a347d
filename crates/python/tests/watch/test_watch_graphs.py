"""What graphs hold, and the graphs that gradients have after `backward(create_graph=True)`: bytes, lines, holder, remedy, who
else holds it, and what is told apart."""

import inspect
import shutil
import weakref

import pytest

torch = pytest.importorskip("torch")

import runner  # noqa: E402

watch = runner.load()
from plimsoll_watch._holders import Hold, Walk  # noqa: E402
from plimsoll_watch._nodes import NODE_BYTES  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Using backward")
STEPS = 60
OF_GRADIENTS = "a graph is kept alive by gradients, which `backward(create_graph=True)` gives a graph of their own"


def lines_of(function, *marks):
    """The lines of a function that end with these marks."""
    lines, first = inspect.getsourcelines(function)
    found = {line.split("# ")[-1].strip(): first + at for at, line in enumerate(lines)}
    return {f"test_watch_graphs.py:{found[mark]}" for mark in marks}


def watched(learn, *arguments):
    """The verdicts on a function, by the bytes that a step keeps: the largest first."""
    torch.manual_seed(0)
    with watch() as told:
        learn(*arguments)
    assert told.verdicts == told.findings, told.text()
    return told.verdicts


def keep_losses(width, rows, inputs):
    net, losses = torch.nn.Linear(width, width), []
    for _ in range(STEPS):
        x = torch.randn(rows, width, requires_grad=True)  # input
        loss = net(x).tanh().pow(2).sum()  # loss
        loss.backward(create_graph=True)  # gradient
        net.zero_grad()
        losses.append(loss)
        inputs.append(weakref.ref(x))
        del x, loss


@pytest.mark.parametrize("width", [64, 4])
def test_losses_whose_inputs_have_gradients_with_graphs(width):
    """Each input holds its gradient, and that by its graph the input: to let go of the losses frees nothing."""
    inputs = []
    (finding,) = watched(keep_losses, width, width // 2, inputs)
    # Five tensors of the inputs' shape, or twelve nodes where those are small.
    assert finding.bytes_per_step == (5 * 32 * 64 * 4 if width == 64 else 12 * NODE_BYTES)
    assert finding.kind == ("activation kept by a graph" if width == 64 else "graph nodes on the host")
    assert set(finding.lines) <= lines_of(keep_losses, "input", "loss", "gradient") and finding.lines
    assert finding.held_by.startswith("local `losses` of keep_losses() -> list of ") and finding.also_held_by == []
    assert finding.cause == OF_GRADIENTS and "and set every `.grad` to None" in finding.remedy
    # The losses are gone with the function, and what the remedy names frees the inputs.
    assert sum(x() is not None for x in inputs) == STEPS
    for x in inputs:
        x().grad = None
    assert sum(x() is not None for x in inputs) == 0


def write_zeros():
    first, second = torch.randn(32, 64, requires_grad=True), torch.randn(64, 1, requires_grad=True)
    for _ in range(STEPS):
        loss = ((torch.randn(16, 32) @ first).tanh() @ second).pow(2).mean()
        loss.backward(create_graph=True)
        with torch.no_grad():
            for one in (first, second):
                one -= 0.001 * one.grad
                one.grad.zero_()


def test_a_loss_that_leads_to_gradients_does_not_hold_them_besides():
    """It leads to the parameters, whose gradients hold what grows."""
    (finding,) = watched(write_zeros)
    held = {finding.held_by, *(words for words, _ in finding.also_held_by)}
    assert held == {f"local `{name}`.grad of write_zeros() -> grad_fn AddBackward0" for name in ("first", "second")}
    assert finding.cause == OF_GRADIENTS and finding.remedy.startswith("Set every `.grad` to None once it was used")


class Deep(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Linear(16, 32)
        self.blocks = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Tanh()) for _ in range(3)])
        self.head = torch.nn.Linear(32, 1)

    def forward(self, x):
        return self.head(self.blocks(self.embed(x)))


def write_zeros_beside_an_optimizer():
    net = Deep()
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    for _ in range(STEPS):
        net(torch.randn(64, 16)).pow(2).mean().backward(create_graph=True)
        optimizer.step()
        for one in net.parameters():
            one.grad.data.zero_()


def test_an_optimizers_groups_are_no_container_of_the_programs():
    (finding,) = watched(write_zeros_beside_an_optimizer)
    assert finding.held_by.startswith("local `optimizer`.param_groups of ") and finding.cause == OF_GRADIENTS
    assert finding.remedy.startswith("Set every `.grad` to None once it was used")


class Replay:
    def __init__(self):
        self._buffers = []


def keep_beside_a_model(replay, width, rows):
    net, other = torch.nn.Linear(width, width), torch.nn.Linear(width, width)
    for _ in range(STEPS):
        x = torch.randn(rows, width, requires_grad=True)  # kept input
        net(x).tanh().pow(2).sum().backward(create_graph=True)  # kept gradient
        net.zero_grad()
        replay._buffers.append(x)
        y = torch.randn(rows, width)  # model's input
        other(y).tanh().pow(2).sum().backward(create_graph=True)  # model's gradient
        for one in other.parameters():
            one.grad.data.zero_()


@pytest.mark.parametrize("width", [64, 4])
def test_a_container_of_the_programs_is_told_apart_from_a_model(width):
    """By the bytes of what the graphs hold, and by their nodes. A `_buffers` of what is no module is a list as any other."""
    replay = Replay()
    kept, model = sorted(watched(keep_beside_a_model, replay, width, width // 2), key=lambda one: "`replay`" not in one.held_by)
    for x in replay._buffers:
        x.grad = None
    assert kept.held_by.startswith("local `replay`._buffers of ") and " -> list of " in kept.held_by
    assert model.held_by.startswith("local `other`._parameters of ")
    if width == 64:
        assert (kept.bytes_per_step, model.bytes_per_step) == (5 * 32 * 64 * 4, 3 * 32 * 64 * 4)
    else:
        assert (kept.bytes_per_step, model.bytes_per_step) == (10 * NODE_BYTES, 15 * NODE_BYTES)
    assert set(kept.lines) <= lines_of(keep_beside_a_model, "kept input", "kept gradient")
    assert set(model.lines) <= lines_of(keep_beside_a_model, "model's input", "model's gradient")
    assert kept.remedy.startswith("Drop tensors that are kept") and model.remedy.startswith("Set every `.grad` to None")


def keep_outputs_of_new_models():
    outputs, x = [], torch.randn(16, 64)

    def learn():
        model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.Linear(128, 1))  # models
        output = model(x).sum()
        output.backward()  # gradients
        return output

    for _ in range(STEPS):
        outputs.append(learn())


def test_parameters_that_only_a_graph_leads_to():
    (finding,) = watched(keep_outputs_of_new_models)
    each = 4 * (64 * 128 + 128 + 128 + 1)
    assert (finding.kind, finding.cause) == ("parameter", "a graph is kept alive by a loss that is kept")
    # With their gradients.
    assert finding.bytes_per_step == 2 * each
    assert set(finding.lines) == lines_of(keep_outputs_of_new_models, "models", "gradients")
    assert finding.held_by.startswith("local `outputs` of keep_outputs_of_new_models() -> list of ")


def keep_two_lists():
    nets, first, second = [torch.nn.Linear(4, 4) for _ in range(2)], [], []
    for _ in range(STEPS):
        for net, losses in zip(nets, (first, second)):
            losses.append(net(torch.randn(2, 4)).tanh().pow(2).sum())
            losses[-1].backward()
            net.zero_grad()
        watch.step()


def test_two_lists_of_losses_do_not_hold_each_others_graphs():
    findings = watched(keep_two_lists)
    assert sorted(finding.held_by.split(" of ")[0] for finding in findings) == ["local `first`", "local `second`"]
    for finding in findings:
        assert (finding.kind, finding.bytes_per_step) == ("graph nodes on the host", 5 * NODE_BYTES)
        assert finding.also_held_by == []


def keep_one_list_twice():
    net, first, second = torch.nn.Linear(4, 4), [], []
    for _ in range(STEPS):
        first.append(net(torch.randn(2, 4)).tanh().pow(2).sum())
        first[-1].backward()
        second.append(first[-1])


def test_two_lists_of_the_same_losses_do():
    (finding,) = watched(keep_one_list_twice)
    ((words, _),) = finding.also_held_by
    assert sorted(held.split(" of ")[0] for held in (finding.held_by, words)) == ["local `first`", "local `second`"]


def carry_a_pair(cell, rows):
    state = torch.zeros(rows, 16), torch.zeros(rows, 16)
    for _ in range(STEPS):
        state = cell(torch.randn(rows, 8), state)


def carry_a_list(cell, rows):
    layers = [torch.zeros(rows, 16), torch.zeros(rows, 16)]
    for _ in range(STEPS):
        for at in range(2):
            layers[at] = cell(torch.randn(rows, 8), layers[at])


def carry_by_name(cell, rows):
    states = {"left": {"h": torch.zeros(rows, 16)}, "right": {"h": torch.zeros(rows, 16)}}
    for _ in range(STEPS):
        for name in states:
            states[name]["h"] = cell(torch.randn(rows, 8), states[name]["h"])


@pytest.mark.parametrize("rows", [32, 1], ids=["bytes", "nodes"])
@pytest.mark.parametrize("carry", [carry_a_pair, carry_a_list, carry_by_name])
def test_a_state_is_carried_in_any_container(carry, rows):
    """As many entries hold more with each step: by the bytes of what their graphs hold, and by nodes."""
    cell = torch.nn.LSTMCell(8, 16) if carry is carry_a_pair else torch.nn.GRUCell(8, 16)
    (finding,) = watched(carry, cell, rows)
    assert finding.kind == ("activation kept by a graph" if rows == 32 else finding.kind)
    assert finding.cause == "a graph is kept alive by a state that is carried from step to step", finding.held_by
    assert "(each tensor of it)" in finding.remedy


def keep_few(steps, every, container):
    cell = torch.nn.GRUCell(8, 64)
    for step in range(steps):
        out = cell(torch.randn(32, 8))
        if step % every == 0:
            if type(container) is dict:
                container[step] = out
            else:
                container.append(out)


@pytest.mark.parametrize("kind", [list, dict])
@pytest.mark.parametrize("steps, every", [(14, 1), (40, 3)])
def test_a_short_list_that_grows_is_of_results(kind, steps, every):
    container = kind()
    with watch() as told:
        keep_few(steps, every, container)
    assert len(container) <= 16 and told.findings
    for finding in told.findings:
        assert finding.cause == "a graph is kept alive by results that are kept", finding.held_by


class Mark:
    """Lives as long as the graph node that it is put on."""


def learn_two(table, net, marks):
    rows = torch.tensor([5, 1, 3])
    for _ in range(STEPS):
        loss = net(table(rows)).norm(2)
        mark = loss.grad_fn.metadata["mark"] = Mark()
        marks.append(weakref.ref(mark))
        del mark
        loss.backward(create_graph=True)


def test_gradients_of_two_modules_that_hold_a_part_each():
    """To let go of those that hold most leaves what the other's hold."""
    table, net, marks = torch.nn.Embedding(10, 5), torch.nn.Linear(5, 1), []
    (finding,) = watched(learn_two, table, net, marks)
    ((besides, _),) = finding.also_held_by
    assert finding.held_by.startswith("local `net`._parameters of ") and besides.startswith("local `table`._parameters")
    assert finding.kind == "graph nodes on the host" and finding.cause == OF_GRADIENTS
    net.weight.grad = net.bias.grad = None
    assert sum(mark() is not None for mark in marks) == STEPS
    table.weight.grad = None
    assert sum(mark() is not None for mark in marks) == 0


def keep_gradients(kept):
    net = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = net(torch.randn(8, 16)).pow(2).mean()
        (gradient,) = torch.autograd.grad(loss, net[0].weight, create_graph=True)  # gradient
        kept.append(gradient)
        gradient.norm().backward()
        optimizer.step()


def keep_with_losses(kept):
    net = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh()) for _ in range(8)])
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    for _ in range(STEPS):
        optimizer.zero_grad()
        shown, loss = torch.randn(16, 16), net(torch.randn(8, 8)).pow(2).mean()
        loss.backward()
        optimizer.step()
        kept.append((shown, loss))


def test_values_beside_losses_whose_graphs_are_more():
    (finding,) = watched(keep_with_losses, [])
    assert (finding.kind, finding.bytes_per_step) == ("value", 16 * 16 * 4)
    assert finding.node_bytes_per_step > 16 * NODE_BYTES
    assert finding.cause == "a graph is kept alive by a loss that is kept"


def nodes_behind(tensors):
    seen, stack = set(), [tensor.grad_fn for tensor in tensors]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += [one for one, _ in node.next_functions if one is not None]
    return [node for node in seen if "Accumulate" not in node.name()]


def test_gradients_that_are_kept_with_their_graphs():
    """The gradient's kilobyte is the lesser part: what is told of its graph's nodes is said with it."""
    kept = []
    (finding,) = watched(keep_gradients, kept)
    assert (finding.kind, finding.bytes_per_step) == ("gradient that is kept", 16 * 16 * 4)
    assert finding.cause == "a graph is kept alive by results that are kept" and "output.detach()" in finding.remedy
    each = len(nodes_behind(kept)) / STEPS
    assert finding.nodes_per_step == pytest.approx(each, rel=0.1) and each > 10
    assert finding.node_bytes_per_step == finding.nodes_per_step * NODE_BYTES > finding.bytes_per_step


def keep_compiled(**options):
    torch._dynamo.reset()
    net, kept = torch.nn.Linear(32, 32), []
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    function = torch.compile(lambda x: net(x).tanh(), **options)  # compiled
    for _ in range(2 * STEPS):
        out = function(torch.randn(16, 32))
        out.pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        kept.append(out)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_what_a_compiled_function_makes_is_made_on_its_line(backend):
    """And not on one of the code that the compiler has written for it."""
    (finding,) = watched(lambda: keep_compiled(backend=backend))
    assert {finding.line} == lines_of(keep_compiled, "compiled") and finding.bytes_per_step == 16 * 32 * 4
    assert finding.held_by.startswith("local `kept` of keep_compiled() -> list of ")


@pytest.mark.skipif(shutil.which("g++") is None, reason="the compiler's default backend writes C++")
def test_the_compilers_default_backend(tmp_path, monkeypatch):
    """It calls kernels past the dispatcher, so that no line is noted: the holder alone is told."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("torch._inductor.config.compile_threads", 1)
    (finding,) = watched(keep_compiled)
    assert finding.bytes_per_step == 16 * 32 * 4 and finding.lines == []
    assert finding.held_by.startswith("local `kept` of keep_compiled() -> list of ") and "in a compiled function" in finding.line


def test_a_walk_passes_by_pytorchs_operators():
    """Compiled functions lead to all of them."""
    torch.ops.aten.add.Tensor(torch.ones(1), torch.ones(1))
    walk = Walk(set(), set(), lambda value, hold: False)
    for operator in (torch.ops, torch.ops.aten, torch.ops.aten.add, torch.ops.aten.add.Tensor):
        walk.add(operator, Hold(None, "local", "operator", "test"))
    walk.run()
    assert walk.seen == set()
    walk.close()


def test_a_modules_names_are_known_by_themselves():
    """Functions that the compiler has made have the dictionary of all of them, and with it the module's loader, which leads to all of
    pytest."""
    walk, found = Walk(set(), set(), lambda value, hold: found.append(hold)), []
    walk.user_globals()
    walk.add(globals(), Hold(None, "local", "names", "test"))
    walk.run()
    assert len(found) > 20 and not [hold for hold in found if "names" in {step.name for step in hold.path()}]
    walk.close()


def keep_values_and_graphs(outs, log):
    net = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(2 * STEPS):
        loss = net(torch.randn(16, 64)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        shown, penalty = torch.randn(16, 64), net.bias.sum()  # shown
        for _ in range(60):
            penalty = penalty + 1
        outs.append(shown)
        log.append({"shown": shown, "penalty": penalty})


def test_who_holds_values_besides_may_have_graphs_of_its_own():
    """Two leaks, of which one's holder is named besides the other's."""
    graphs, values = watched(keep_values_and_graphs, [], [])
    assert values.kind == "value" and values.bytes_per_step == 16 * 64 * 4
    assert graphs.kind == "graph nodes on the host" and graphs.held_by.startswith("local `log` of ")
    assert graphs.bytes_per_step == 61 * NODE_BYTES


def carry_graphs():
    base, total, x = torch.randn(64, 64), torch.zeros(()), torch.randn(2, 64)
    for _ in range(2 * STEPS):
        loss = (x @ torch.nn.Parameter(base)).mean()
        loss.backward(retain_graph=True)  # gradient
        total = total + loss


def test_gradients_of_parameters_that_only_a_carried_graph_leads_to():
    finding = watched(carry_graphs)[0]
    assert finding.bytes_per_step == 64 * 64 * 4 and set(finding.lines) == lines_of(carry_graphs, "gradient")
    assert finding.held_by.startswith("local `total` of carry_graphs()"), finding.held_by


def test_a_modules_names_that_are_no_words():
    """`globals()` taken for a dictionary of any keys."""
    cache = globals()

    def learn():
        net = torch.nn.Linear(64, 64)
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        for step in range(2 * STEPS):
            net(torch.randn(4, 64)).pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            cache[step] = torch.ones(16, 64)

    try:
        (finding,) = watched(learn)
    finally:
        for step in range(2 * STEPS):
            cache.pop(step, None)
    assert finding.kind == "value" and finding.bytes_per_step == 16 * 64 * 4
    assert "`__dict__`" in finding.held_by, finding.held_by


def keep_values_and_losses():
    log = {"hidden": [], "loss": []}
    net = torch.nn.Linear(32, 64)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(STEPS):
        hidden = net(torch.randn(16, 32))
        loss = hidden.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log["hidden"].append(hidden.detach())
        log["loss"].append(loss)


def test_nodes_of_one_key_are_not_told_as_anothers():
    values, nodes = watched(keep_values_and_losses)
    assert values.held_by.startswith("local `log`['hidden'] of ") and values.cause == "values are kept"
    assert nodes.held_by.startswith("local `log`['loss'] of ")
    assert (nodes.kind, nodes.cause) == ("graph nodes on the host", "a graph is kept alive by a loss that is kept")


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.saved = torch.nn.Linear(32, 32), []

    def forward(self, x):
        y = self.linear(x)
        self.saved.append(y.detach())
        return y


class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.history = torch.nn.Linear(32, 32), {}

    def forward(self, x):
        y = self.linear(x).tanh()
        self.history[len(self.history)] = y.detach()
        return y


def keep_in_two_children():
    model = torch.nn.ModuleDict({"encode": Encoder(), "decode": Decoder()})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(STEPS):
        optimizer.zero_grad()
        model["decode"](model["encode"](torch.randn(16, 32))).mean().backward()
        optimizer.step()


def test_what_two_children_of_a_model_keep_is_told_apart():
    found = {finding.held_by.partition(" of ")[0] for finding in watched(keep_in_two_children)}
    assert found == {"local `model`._modules['encode'].saved", "local `model`._modules['decode'].history"}


def keep_gradients_behind_two_modules():
    """An inner gradient that is kept, and what two modules' gradients hold besides, of which one has a small part."""
    gradients = []
    embedding, net = torch.nn.Embedding(10, 64), torch.nn.Linear(64, 1)
    index = torch.tensor([1, 2, 3])
    for _ in range(STEPS):
        hook = embedding.register_full_backward_hook(lambda module, inner, outer: gradients.append(outer[0]))
        net(embedding(index)).norm(2).backward(create_graph=True)
        hook.remove()
        gradients[-1].sum().backward()


@pytest.mark.filterwarnings("ignore:Full backward hook")
def test_each_module_whose_gradients_hold_a_part_is_told():
    found = watched(keep_gradients_behind_two_modules)
    held = {held for finding in found for held in (finding.held_by, *(words for words, _ in finding.also_held_by))}
    for name in ("gradients", "net", "embedding"):
        assert any(one.startswith(f"local `{name}`") for one in held), held
