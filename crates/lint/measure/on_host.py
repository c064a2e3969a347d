"""The figures on the rule pages that were measured on the host: `python crates/lint/measure/on_host.py` (Linux, PyTorch, NumPy).

Bytes are resident memory of the process after the collector and `malloc_trim`, so the last few thousand vary from run to run;
those of the device are in `on_device.py`. Each part prints what it measured under the name of its rule.
"""

import ctypes
import functools
import gc
import io
import os
import time
import warnings

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from parts import run_all, say

PAGE = os.sysconf("SC_PAGE_SIZE")
BATCH = torch.randn(256, 1024)


def resident(collect=True):
    if collect:
        gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * PAGE


def seconds(work, times):
    start = time.perf_counter()
    for _ in range(times):
        work()
    return time.perf_counter() - start


def layers():
    return nn.Sequential(*[part for _ in range(4) for part in (nn.Linear(1024, 1024), nn.ReLU())])


def message(work):
    try:
        work()
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return "no error"


def first_warning(work):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = work()
    return result, str(caught[0].message)[:120] if caught else "no warning"


def saved_bytes(work):
    """Bytes of the storages that autograd saves while the work runs."""
    seen = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        seen[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        work()
    return sum(seen.values())


def graph_kept():
    for kind in ("graph", "after backward", "retained", "item"):
        model, kept = layers(), []
        model(BATCH).mean().backward()
        model.zero_grad()
        before = resident()
        for _ in range(20):
            loss = model(BATCH).mean()
            if kind in ("after backward", "retained"):
                loss.backward(retain_graph=kind == "retained")
                model.zero_grad()
            kept.append(loss.item() if kind == "item" else loss)
            del loss
        say("graph-kept", kept=kind, bytes_a_step=(resident() - before) // 20)


def missing_zero_grad():
    model = nn.Linear(1000, 1000)
    for step in range(3):
        model(torch.ones(1, 1000)).sum().backward()
        grad = model.weight.grad
        say("missing-zero-grad", step=step + 1, bytes=grad.nbytes, first=grad[0, 0].item(), address=grad.data_ptr())


def hidden_state_not_detached():
    model, batch = nn.GRU(512, 512), torch.randn(20, 32, 512)
    model(batch)[0].sum().backward()
    for detach in (False, True):
        state = None
        before = resident()
        for _ in range(10):
            output, state = model(batch, state)
            del output
            state = state.detach() if detach else state
        say("hidden-state-not-detached", detached=str(detach), bytes_a_batch=(resident() - before) // 10)

    def twice():
        state = None
        for _ in range(2):
            output, state = model(batch, state)
            output.sum().backward()

    say("hidden-state-not-detached", raises=message(twice))

    def retained(steps):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        state, before = None, resident()
        for _ in range(5):
            optimizer.zero_grad()
            output, state = model(batch, state)
            output.sum().backward(retain_graph=True)
            del output
            if steps:
                optimizer.step()
        say("hidden-state-not-detached", retained_bytes_a_batch=(resident() - before) // 5)

    retained(steps=False)
    say("hidden-state-not-detached", retained_and_stepped=message(lambda: retained(steps=True)))


def eval_without_no_grad():
    model = layers().eval()
    before = resident()
    output = model(BATCH)
    with_graph = resident() - before
    del output
    before = resident()
    with torch.no_grad():
        output = model(BATCH)
    say("eval-without-no-grad", with_graph=with_graph, no_grad=resident() - before, output=output.nbytes)


def in_place():
    leaf = torch.zeros(3, requires_grad=True)
    say("inplace-on-grad-leaf", raises=message(lambda: leaf.add_(1)))

    def after_exp():
        result = torch.randn(3, requires_grad=True).exp()
        result.add_(1)
        result.sum().backward()

    def after_power():
        result = torch.randn(3, requires_grad=True) ** 2
        result.add_(1)
        result.sum().backward()

    say("inplace-on-saved", exp=message(after_exp), power=message(after_power))


def slice_keeps_storage():
    before = resident()
    whole = torch.zeros(10000, 1000).fill_(1)
    row = whole[0]
    del whole
    kept = resident() - before
    row = row.clone()
    say("slice-keeps-storage", row=row.nbytes, kept=kept, after_clone=resident() - before)
    table, part, copy = torch.zeros(1000, 1000), io.BytesIO(), io.BytesIO()
    torch.save(table[:10], part)
    torch.save(table[:10].clone(), copy)
    say("slice-keeps-storage", saved=part.tell(), saved_clone=copy.tell())


class Holder:
    def __init__(self, cycle):
        self.model = nn.Linear(3000, 3000)
        self.callback = (lambda: self.model.train()) if cycle else None


def closure_keeps_self():
    gc.disable()
    for cycle in (False, True):
        before = resident(collect=False)
        holder = Holder(cycle)
        del holder
        after = resident(collect=False) - before
        gc.collect()
        say("closure-keeps-self", cycle=str(cycle), after_del=after, after_collect=resident(collect=False) - before)
    gc.enable()


def loss_outside_autocast():
    model, batch, target = nn.Linear(1000, 1000), torch.randn(64, 1000), torch.randint(0, 1000, (64,))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = model(batch)
        inside = F.cross_entropy(output, target)
    outside, exact = F.cross_entropy(output, target), F.cross_entropy(model(batch), target)
    say("loss-outside-autocast", bytes=output.nbytes, inside=f"{inside.dtype} {inside.item():.4f}",
        outside=f"{outside.dtype} {outside.item():.4f}", exact=f"{exact.item():.4f}")


def scaler_misuse():
    parameter = nn.Parameter(torch.zeros(1))
    optimizer, scaler = torch.optim.SGD([parameter], lr=0.1), torch.amp.GradScaler("cpu")
    scaler.scale(parameter.sum()).backward()
    optimizer.step()
    say("scaler-misuse", after_plain_step=parameter.item())


def gc_collect_in_loop():
    objects = [[number] for number in range(1_000_000)]
    start = time.perf_counter()
    freed = gc.collect()
    say("gc-collect-in-loop", objects=len(objects), ms=round((time.perf_counter() - start) * 1e3, 1), freed=freed)
    gc.disable()
    before = resident(collect=False)
    tensor = torch.ones(10000, 1000)
    held = resident(collect=False) - before
    del tensor
    say("gc-collect-in-loop", held=held, after_del_without_collector=resident(collect=False) - before)
    gc.enable()


def allocation_in_loop():
    kept = torch.zeros(1024, 1024)
    before, start = resident(), time.perf_counter()
    for _ in range(1000):
        # The old buffer goes only when the new one is there.
        buffer = torch.zeros(1024, 1024)
        buffer.add_(1)
    each = time.perf_counter() - start
    say("allocation-in-loop", bytes_each=buffer.nbytes, grown=resident() - before, s_each_time=round(each, 2),
        s_reset=round(seconds(lambda: kept.zero_().add_(1), 1000), 2))


def strided():
    transposed = torch.randn(1000, 2000).t()
    say("view-on-non-contiguous", raises=message(lambda: transposed.view(-1)), reshape_copies=transposed.reshape(-1).nbytes)
    transposed = torch.randn(2000, 2000).t()
    ordered = transposed.contiguous()
    say("non-contiguous-in-loop", bytes=ordered.nbytes, ms_contiguous=round(seconds(transposed.contiguous, 50) * 20, 1),
        ms_add=round(seconds(lambda: transposed + 1, 50) * 20, 1), ms_add_ordered=round(seconds(lambda: ordered + 1, 50) * 20, 1))


def checkpoints():
    model, batch = layers(), torch.randn(256, 1024, requires_grad=True)
    say("checkpoint-use-reentrant", warns=first_warning(lambda: checkpoint(model, batch))[1])
    for kind in ("none", False, True):
        before = resident()
        output = model(batch) if kind == "none" else checkpoint(model, batch, use_reentrant=kind)
        say("checkpoint-use-reentrant, reentrant-checkpoint", use_reentrant=str(kind), held=resident() - before)
        output.sum().backward()
        del output
    output, warning = first_warning(lambda: checkpoint(model, BATCH, use_reentrant=True))
    say("reentrant-checkpoint", input_without_grad=str(output.requires_grad), warns=warning)


def retain_graph_in_loop():
    model = layers()
    model(BATCH).sum().backward()
    for retain in (False, True):
        before = resident()
        loss = model(BATCH).sum()
        loss.backward(retain_graph=retain)
        say("retain-graph-in-loop", retained=str(retain), held=resident() - before)
        del loss


def features_on_device():
    model, collected, before = nn.Linear(1024, 4096), [], resident()
    with torch.no_grad():
        for _ in range(10):
            collected.append(model(BATCH))
    say("features-on-device", bytes_an_output=collected[0].nbytes, kept_each=(resident() - before) // 10)


def retry_inside_except():
    """A model that runs out of memory after its fourth layer, and what is held where the retry would start."""

    class Fails(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = layers()

        def forward(self, x):
            hidden = x
            for layer in self.body:
                hidden = layer(hidden)
            raise torch.OutOfMemoryError("out of memory")

    model, x = Fails(), torch.randn(4096, 1024)
    before = resident()
    try:
        model(x)
    except torch.OutOfMemoryError:
        inside = resident() - before
    say("retry-inside-except", inside=inside, after=resident() - before)
    before = resident()
    try:
        model(x)
    except torch.OutOfMemoryError as error:
        error.__traceback__ = None
        say("retry-inside-except", inside_without_traceback=resident() - before)


def optimizer_in_loop():
    for anew in (False, True):
        model, made = layers(), set()
        optimizer = torch.optim.Adam(model.parameters())
        parameters = sum(parameter.nbytes for parameter in model.parameters())
        state_bytes = 0
        for _ in range(10):
            if anew:
                optimizer, made = torch.optim.Adam(model.parameters()), set()
            optimizer.zero_grad()
            model(BATCH).square().mean().backward()
            optimizer.step()
            for state in optimizer.state.values():
                for value in state.values():
                    if id(value) not in made:
                        made.add(id(value))
                        state_bytes += value.nbytes
        step = int(next(iter(optimizer.state.values()))["step"])
        say("optimizer-in-loop", anew=str(anew), parameter_bytes=parameters, state_bytes_made=state_bytes, steps_behind=step)


def generator_not_detached():
    generator, discriminator = layers(), nn.Linear(1024, 1)
    optimizer = torch.optim.SGD(discriminator.parameters(), lr=0.01)
    for detach in (False, True):
        def step():
            fake = generator(BATCH)
            fake = fake.detach() if detach else fake
            return discriminator(fake).mean()

        generator.zero_grad()
        optimizer.zero_grad()
        step().backward()
        before = resident()
        loss = step()
        held = resident() - before
        del loss
        unused = sum(p.grad.nbytes for p in generator.parameters() if p.grad is not None)
        took = min(seconds(lambda: (optimizer.zero_grad(), step().backward(), optimizer.step()), 10) for _ in range(5))
        say("generator-not-detached", detached=str(detach), held_before_backward=held, gradients_of_the_generator=unused, milliseconds_a_step=round(took * 100, 2))


def gradients_of_inputs():
    model, kept, before = layers(), [], resident()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for _ in range(10):
        x = torch.randn(256, 1024, requires_grad=True)
        model(x).sum().backward()
        kept.append(x.grad)
        del x
    say("features-on-device", gradient_bytes=kept[0].nbytes, kept_each=(resident() - before) // 10)


def hooks_in_loop():
    model, captured = layers(), []
    for _ in range(5):
        model[0].register_forward_hook(lambda module, inputs, output: captured.append(output.detach()))
    model(BATCH)
    say("hooks-in-loop", captured=len(captured), bytes_each=captured[0].nbytes)


class Cached(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.ones(5000, 1000))

    @functools.lru_cache
    def lookup(self, number):
        return number


def cache_on_method():
    before = resident()
    module = Cached()
    module.lookup(1)
    del module
    kept = resident() - before
    Cached.lookup.cache_clear()
    say("cache-on-method", after_del=kept, after_cache_clear=resident() - before)


def batchnorm_or_dropout_without_eval():
    model = nn.Sequential(nn.Linear(1024, 1024), nn.Dropout(0.5))
    training = saved_bytes(lambda: model(BATCH))
    model.eval()
    norm = nn.BatchNorm1d(1024)
    mean = norm.running_mean.clone()
    with torch.no_grad():
        alone = norm(BATCH[:2])
        moved = (norm.running_mean - mean).abs().max().item()
        differs = (alone - norm(BATCH[:128])[:2]).abs().max().item()
    say("batchnorm-or-dropout-without-eval", saved_training=training, saved_evaluation=saved_bytes(lambda: model(BATCH)),
        mean_moved=round(moved, 2), rows_differ=round(differs, 2))


def delete_before_backward():
    model, batch = nn.Linear(512, 50000), torch.randn(512, 512)
    targets = {"cross-entropy": torch.randint(0, 50000, (512,)), "mse": torch.zeros(512, 50000)}
    model(batch).sum().backward()
    for name, target in targets.items():
        model.zero_grad()
        before = resident()
        logits = model(batch)
        loss = F.cross_entropy(logits, target) if name == "cross-entropy" else F.mse_loss(logits, target)
        held = resident() - before
        del logits
        say("delete-before-backward", loss=name, held=held, after_del=resident() - before)
        del loss


def names_and_defaults():
    say("deprecated-amp", warns=first_warning(torch.cuda.amp.autocast)[1])
    model = nn.Linear(1000, 1000)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for options in ({}, {"set_to_none": False}):
        model(torch.randn(2, 1000)).sum().backward()
        optimizer.zero_grad(**options)
        grad = model.weight.grad
        say("set-to-none-default", options=str(options), bytes_left=0 if grad is None else grad.nbytes)


def private_after(read):
    """Private bytes that a forked process gains by reading a million names once."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        def private():
            with open("/proc/self/smaps_rollup") as file:
                return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Private"))

        gc.freeze()
        before = private()
        for number in range(1_000_000):
            read(number)
        os.write(send, str(private() - before).encode())
        os._exit(0)
    os.waitpid(child, 0)
    return int(os.read(receive, 100))


def list_dataset_workers():
    names = [f"images/train/{number:08d}.jpg" for number in range(1_000_000)]
    array = np.array(names)
    say("list-dataset-workers", list=private_after(lambda number: len(names[number])),
        array=private_after(lambda number: str(array[number])), array_bytes=array.nbytes)


PARTS = [graph_kept, missing_zero_grad, hidden_state_not_detached, eval_without_no_grad, in_place, slice_keeps_storage, closure_keeps_self,
         loss_outside_autocast, scaler_misuse, gc_collect_in_loop, allocation_in_loop, strided, checkpoints, retain_graph_in_loop,
         features_on_device, hooks_in_loop, cache_on_method, batchnorm_or_dropout_without_eval, delete_before_backward, names_and_defaults,
         list_dataset_workers, retry_inside_except, optimizer_in_loop, generator_not_detached, gradients_of_inputs]


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    print(f"PyTorch {torch.__version__}, Python on {os.uname().machine}")
    run_all(PARTS)


if __name__ == "__main__":
    main()
