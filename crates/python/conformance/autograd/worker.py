"""Runs programs of `programs.py` with PyTorch or Plimsoll and tells what happened: `python
worker.py torch|plimsoll` reads a program (a JSON list of lines) from each line of its input and
answers with a line of JSON. A program ends at the first line that raises; what it did so far
counts."""

import json
import sys
import warnings

from functions import functions


def load(name):
    """The module of that name, and its `grad`."""
    if name == "torch":
        import torch

        torch.set_num_threads(1)
        return torch, torch.autograd.grad
    import plimsoll

    return plimsoll, plimsoll.grad


def numbers(tensor):
    """Shape and elements, which compare and print alike in both."""
    # The sum makes real zeros of those that PyTorch only notes.
    return [list(tensor.shape), tensor.detach().add(0.0).contiguous().view(-1).tolist()]


def look_at_histories(names):
    """Brings the histories of views up to date. PyTorch does so when somebody looks, and until then
    takes a view of a tensor that came into a graph later for a leaf that cannot be written."""
    for value in names.values():
        if hasattr(value, "requires_grad"):
            try:
                value.grad_fn
            except RuntimeError:
                pass


def look(tensor):
    """What is compared of a tensor at the end, and its gradient."""
    gradient = tensor.grad
    seen = [numbers(tensor), tensor.requires_grad, tensor.is_leaf, None if gradient is None else numbers(gradient)]
    return seen, gradient


def run(module, grad, lines):
    """Runs a program; returns what can be seen of it."""
    log = []

    def make(values, shape, wants):
        tensor = module.tensor(values, dtype=module.float64).view(shape)
        return tensor.clone().requires_grad_(wants)

    def hook(tensor, name, factor):
        def run_hook(grad):
            log.append([name, None if grad is None else numbers(grad)])
            # PyTorch saves a number that it multiplies by, and refuses a second backward for its
            # sake; a tensor both save.
            return None if factor is None or grad is None else grad * module.tensor(factor, dtype=module.float64)

        return tensor.register_hook(run_hook)

    def grad_or_zeros(tensor):
        return module.zeros_like(tensor).detach() if tensor.grad is None else tensor.grad

    def grad_as_variables(outputs, inputs, **options):
        # Copies: whether a gradient is a view of another tensor is not told, but decides whether it
        # can be written.
        found = grad(outputs, inputs, **options)
        return [module.zeros_like(x).detach() if g is None else g.clone() for g, x in zip(found, inputs)]

    def note(name, grads):
        log.append([name, [numbers(grad) if hasattr(grad, "requires_grad") else grad for grad in grads]])

    names = {"t": module, "make": make, "hook": hook, "grad": grad_as_variables, "grad_or_zeros": grad_or_zeros}
    names["f"] = functions(module, note)
    fixed = set(names)
    refused, why = None, ""
    for number, line in enumerate(lines):
        try:
            exec(line, names)
        except Exception as error:
            refused, why = number, f"{type(error).__name__}: {error}"
            break
        look_at_histories(names)
    seen = {}
    pointers = {}
    for name, value in names.items():
        if name in fixed or not hasattr(value, "requires_grad"):
            continue
        try:
            seen[name], gradient = look(value)
        except RuntimeError:
            # A view made without recording whose base was written since: PyTorch refuses to say
            # anything about it.
            seen[name] = "refused"
            continue
        if gradient is not None and gradient.numel() > 0:
            pointers.setdefault(gradient.data_ptr(), set()).add(id(value))
    result = {"refused": refused, "log": log, "seen": seen}
    # Explanations, not compared.
    result["why"] = why
    result["shared"] = any(len(found) > 1 for found in pointers.values())
    return result


def main():
    # PyTorch warns of reading the gradient of what is no leaf, and of recorded backward.
    warnings.simplefilter("ignore")
    module, grad = load(sys.argv[1])
    for line in sys.stdin:
        print(json.dumps(run(module, grad, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
