"""Training that PyTorch answered, written down as JSON and run again without it: `golden.py` records, and a test of the package
replays. Modules with their state, results, buffers and gradients; optimizers over 100 steps; schedulers over 60."""

from __future__ import annotations

import base64
from types import SimpleNamespace
from typing import Any

import numpy
import plimsoll
import schedules

# As `torch.testing.assert_close`. In float32 sums are ordered otherwise on other machines.
TOLERANCES = {"float32": (1e-4, 1e-5), "float64": (1e-7, 1e-7)}

# Steps of an optimizer after which its parameters are written down. LBFGS has up to 20 iterations in each.
STEPS, CLOSING_STEPS = (10, 100), (3, 10)

SHAPES = [(3, 2), (4,), ()]


def encoded(value: Any) -> Any:
    """A value as JSON, arrays included; `TypeError` if there is none."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return {"list" if isinstance(value, list) else "tuple": [encoded(item) for item in value]}
    if isinstance(value, numpy.ndarray):
        data = base64.b64encode(numpy.ascontiguousarray(value).tobytes()).decode()
        return {"tensor": [str(value.dtype), list(value.shape), data]}
    raise TypeError(f"{type(value).__name__} cannot be written down")


def array(value: Any) -> numpy.ndarray:
    """A tensor that was written down."""
    dtype, shape, data = value["tensor"]
    return numpy.frombuffer(base64.b64decode(data), dtype=dtype).reshape(shape).copy()


def decoded(value: Any, made: list[Any]) -> Any:
    """The value again; its tensors are appended to `made`."""
    if not isinstance(value, dict):
        return value
    ((kind, parts),) = value.items()
    if kind in ("list", "tuple"):
        items = [decoded(item, made) for item in parts]
        return items if kind == "list" else tuple(items)
    if kind == "name":
        return getattr(plimsoll, parts)
    made.append(plimsoll.from_numpy(array(value)).clone())
    return made[-1]


def leaves_of(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves_of(item)]
    return [value] if isinstance(value, plimsoll.Tensor) else []


def different(what: str, wanted: Any, found: Any) -> str | None:
    """What differs from a tensor that was written down, in words."""
    wanted, here = array(wanted), found.detach().numpy()
    if here.shape != wanted.shape or here.dtype != wanted.dtype:
        return f"{what} is {here.dtype}{list(here.shape)}, PyTorch's {wanted.dtype}{list(wanted.shape)}"
    relative, absolute = TOLERANCES.get(str(wanted.dtype), (0.0, 0.0))
    near = numpy.isclose(here, wanted, rtol=relative, atol=absolute, equal_nan=wanted.dtype.kind == "f")
    return None if near.all() else f"{what} has {here[~near].flat[0]}, PyTorch's {wanted[~near].flat[0]}"


def module(case: dict[str, Any]) -> str | None:
    """Builds the module, gives it PyTorch's state, calls it and goes back; what differs, in words."""
    keywords = {name: decoded(value, []) for name, value in case["keywords"].items()}
    made = getattr(plimsoll.nn, case["module"])(*decoded(case["arguments"], []), **keywords)
    made.to(getattr(plimsoll, case["dtype"])).train(case["training"])
    tensors: list[Any] = []
    args = decoded(case["call"][0], tensors)
    named = {name: decoded(value, tensors) for name, value in case["call"][1].items()}
    if case["lazy"]:
        made(*args, **named)
    if repr(made) != case["text"]:
        return f"the text is {made!r}, PyTorch's {case['text']}"
    if list(made.state_dict()) != list(case["state"]):
        return f"the keys are {list(made.state_dict())}, PyTorch's {list(case['state'])}"
    made.load_state_dict({name: plimsoll.from_numpy(array(value)) for name, value in case["state"].items()})
    leaves = [tensors[place].requires_grad_() for place in case["leaves"]]
    results = leaves_of(made(*args, **named))
    if len(results) != len(case["results"]):
        return f"{len(results)} results, PyTorch gives {len(case['results'])}"
    pairs = [("a result", want, have) for want, have in zip(case["results"], results, strict=True)]
    pairs += [("a buffer", want, have) for want, have in zip(case["buffers"], made.buffers(), strict=True)]
    weights = [plimsoll.from_numpy(array(weight)) for weight in case["weights"]]
    if weights:
        outputs = [result for result in results if result.requires_grad]
        plimsoll.autograd.backward(outputs, weights)
        owners = [*dict(made.named_parameters()).items(), *((f"argument {at}", leaf) for at, leaf in enumerate(leaves))]
        for want, (name, owner) in zip(case["gradients"], owners, strict=True):
            if (want is None) != (owner.grad is None):
                return f"{name} has {'no' if owner.grad is None else 'a'} gradient"
            if want is not None:
                pairs.append((f"the gradient of {name}", want, owner.grad))
    return next((words for pair in pairs if (words := different(*pair)) is not None), None)


def gradient(step: int, number: int, shape: tuple[int, ...]) -> numpy.ndarray:
    """A parameter's gradient at a step: the same on every machine, and not of one sign."""
    count = int(numpy.prod(shape, dtype=int))
    places = numpy.arange(count, dtype=numpy.int64)
    return (((places * 7919 + step * 10473 + number * 1299 + 17) % 2003) / 1001.0 - 1.0).reshape(shape)


def steps(package: Any, tensor: Any, name: str, options: dict[str, Any]) -> list[list[Any]]:
    """Runs an optimizer of a package; the parameters at the steps that are written down."""
    params = [package.nn.Parameter(tensor(gradient(-1, number, shape))) for number, shape in enumerate(SHAPES)]
    closes = name == "LBFGS"
    groups = params if closes else [{"params": params[:2]}, {"params": params[2:], "lr": 0.004}]
    optimizer = getattr(package.optim, name)(groups, **options)
    goals = [tensor(gradient(-2, number, shape)) for number, shape in enumerate(SHAPES)]

    def loss() -> Any:
        optimizer.zero_grad()
        parts = [((param - goal) ** 2).sum() + 0.1 * (param**4).sum() for param, goal in zip(params, goals, strict=True)]
        total = parts[0] + 3 * parts[1] + parts[2]
        total.backward()
        return total

    marks = CLOSING_STEPS if closes else STEPS
    kept = []
    for step in range(1, marks[-1] + 1):
        if closes:
            optimizer.step(loss)
        else:
            for number, param in enumerate(params):
                # A parameter that had no part in this step.
                absent = number == 1 and step % 5 == 0
                param.grad = None if absent else tensor(gradient(step, number, SHAPES[number]))
            optimizer.step()
        if step in marks:
            kept.append([param.detach().clone() for param in params])
    return kept


def optimizer(case: dict[str, Any]) -> str | None:
    """Steps as PyTorch did; what differs, in words."""
    options = {name: decoded(value, []) for name, value in case["options"].items()}
    found = steps(plimsoll, lambda values: plimsoll.from_numpy(numpy.asarray(values)).clone(), case["optimizer"], options)
    marks = CLOSING_STEPS if case["optimizer"] == "LBFGS" else STEPS
    for mark, wanted, have in zip(marks, case["parameters"], found, strict=True):
        for number, (want, one) in enumerate(zip(wanted, have, strict=True)):
            if words := different(f"parameter {number} after {mark} steps", want, one):
                return words
    return None


def rates(package: Any, name: str, kind: str) -> list[list[float]]:
    """The rates and momenta of a scheduler's steps."""
    pair = schedules.made(package, name, kind)
    return [[float(one) for one in schedules.step(*pair, at)] for at in range(schedules.STEPS)]


def scheduler(case: dict[str, Any]) -> str | None:
    """Steps as PyTorch did; what differs, in words."""
    found = rates(SimpleNamespace(nn=plimsoll.nn, optim=plimsoll.optim, ones=plimsoll.ones), case["scheduler"], case["kind"])
    for step, (want, have) in enumerate(zip(case["rates"], found, strict=True)):
        if any(abs(left - right) > 1e-14 for left, right in zip(want, have, strict=True)):
            return f"{have} at step {step}, PyTorch's {want}"
    return None
