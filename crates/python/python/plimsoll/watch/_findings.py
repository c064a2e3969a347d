"""What is told of something that grows: bytes and objects a step, line, kind, holder, cause and remedy, in the words
of `plimsoll report` and `plimsoll lint`. It decides nothing about growth; `_naming.py` fills it in."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any, Iterable, NamedTuple

from . import _kinds as kinds
from ._holders import NAMED_KEYS, Hold, folded


class Owner(NamedTuple):
    """What a storage is to the program, and through what it is held."""

    kind: str
    hold: Hold
    is_scalar: bool
    has_graph: bool = False


def kind_of(hold: Hold, is_parameter: bool, is_leaf: bool) -> str:
    """What a tensor is by itself, wherever its storage goes on to; `is_leaf` if the program asks for its gradient."""
    if is_parameter:
        return kinds.PARAMETER
    if any(step.is_optimizer_state for step in hold.path()):
        return kinds.OPTIMIZER_STATE
    return kinds.INPUT if is_leaf else kinds.VALUE


def preference(hold: Hold, is_scalar: bool, sequence: int) -> tuple[int, int]:
    """Containers and attributes before variables, and those before scalars: the order in which tensors that lead to one graph
    are named. Of equal ones the earlier made first: an average is computed anew of a sum, and the sum is what grows."""
    return _rank(hold, is_scalar), sequence


def _rank(hold: Hold, is_scalar: bool) -> int:
    if any(step.how in ("entry", "cache", "hook", "closure", "class", "frame") for step in hold.path()):
        return 0
    if hold.how in ("attribute", "item"):
        return 1
    return 3 if is_scalar else 2


@dataclasses.dataclass
class Finding:
    """Something that grows from step to step."""

    bytes_per_step: float
    objects_per_step: float
    lines: list[str]
    kind: str
    held_by: str
    also_held_by: list[tuple[str, list[dict[str, Any]]]]
    path: list[dict[str, Any]]
    cause: str
    remedy: str
    is_verdict: bool = False
    is_note: bool = False
    seen_at_step: int = 0
    files: list[str] = dataclasses.field(default_factory=list)
    phase: str = ""
    # The first and last steps of what stays, for each key of a dictionary.
    steps_by_key: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    # Of graphs that hold storages: their nodes, and what those take on the host besides.
    nodes_per_step: float = 0.0
    node_bytes_per_step: float = 0.0

    @property
    def holder(self) -> tuple[tuple[str, ...], ...]:
        """What is told together, without lengths and keys: the path up to a container's entry, a graph or a kept frame."""
        return _until_entry(self.path)

    @property
    def holders(self) -> set[tuple[tuple[str, ...], ...]]:
        """The same of all that hold it. Who holds values besides may have graphs of its own, which are another leak."""
        others = self.also_held_by if is_of_graph(self.cause) else []
        return {_until_entry(path) for path in (self.path, *(path for _, path in others))}

    @property
    def line(self) -> str:
        if self.lines:
            return self.lines[0]
        if self.kind == kinds.NODES:
            return "unknown line"
        return "not seen (between noted steps, in a compiled function, in another thread, or under a mode of the program)"


def _until_entry(path: list[dict[str, Any]]) -> tuple[tuple[str, ...], ...]:
    ends = ("entry", "item", "key", "cache", "graph", "frame")
    told: list[tuple[str, ...]] = []
    for before, step in zip([{}, *path], path):
        # What a module within a module holds is its own.
        is_child = step["how"] == "item" and (before.get("name"), before.get("of")) == ("_modules", "module")
        if step["how"] in ends and not is_child:
            break
        told.append((step["how"], "" if is_child else step.get("name", ""), step.get("of", "")))
    return tuple(told)


def words_of(hold: Hold) -> str:
    """A path as one reads it: `local history of main() -> list of 312`. A chain of the same steps is said once."""
    said: list[str] = []
    is_entry = False
    for link, times in folded([(step.words(), step.how) for step in hold.path()]):
        for words, how in link:
            if words.startswith((".", "[")) and said and not is_entry:
                said[-1] = _behind_name(said[-1], words)
            else:
                said.append(words)
            # An attribute of an entry is none of the container's.
            is_entry = how in ("entry", "key")
        if times > 1:
            said[-1] += f" ({times} times)" if len(link) == 1 else f" (the last {len(link)} steps {times} times)"
    return " -> ".join(said)


def _behind_name(said: str, words: str) -> str:
    """`local `h` of train()` and `.losses` is `local `h`.losses of train()`: no attribute of the function."""
    named = _NAME_OF_FUNCTION.match(said)
    return f"{named[1]}{words} of {named[2]}" if named else said + words


_NAME_OF_FUNCTION = re.compile(r"(.*`.*) of (\S+\(\))$")


def steps_of(hold: Hold) -> list[dict[str, Any]]:
    """The same for programs; `times` where a chain was folded, and `together` where its links have several steps."""
    steps = []
    for step in hold.path():
        all_facts = {"how": step.how, "name": step.name, "of": step.of, "size": step.size, "most": step.most}
        steps.append({key: value for key, value in all_facts.items() if value not in ("", 0, None)})
    told = []
    for link, times in folded(steps):
        often = {"times": times} if times > 1 else {}
        told += [{**facts, **often, **({"together": len(link)} if len(link) > 1 else {})} for facts in link]
    return told


def holder_of(hold: Hold) -> Hold:
    """The part of a path that names what to drop: without the graph or gradient behind it. Of a gradient that has a graph it is
    the gradient, the outermost that has a name."""
    while hold.how in ("graph", "grad", "saved") and hold.parent is not None:
        if hold.how == "graph" and hold.parent.how == "grad" and (hold.parent.parent is None or hold.parent.parent.how != "graph"):
            return hold.parent
        hold = hold.parent
    return hold


def is_kept_in_container(hold: Hold) -> bool:
    """Whether a container that is none of a module's or optimizer's own is on the path."""
    for step in hold.path():
        if step.is_of("optimizer"):
            # Its groups, and the lists in them.
            return False
        if step.how in ("entry", "key", "cache") and (step.parent is None or not step.parent.is_of("module")):
            return True
    return False


# In place of an edge, for all graphs behind gradients.
_OF_GRADIENTS = (("grad", "", ""),)


def edge_of_graph(hold: Hold) -> Any:
    """What the nodes behind a tensor are counted under. Gradients of modules share what is behind them: they are told together. Of
    what else is kept, the tensor's graph and its gradient's, and those of inputs that only its graph leads to, are one."""
    is_of_graph = hold.parent is not None and hold.parent.how == "graph"
    if hold.how == "grad" and not is_of_graph and not is_kept_in_container(hold):
        return _OF_GRADIENTS
    while hold.how in ("grad", "graph") and hold.parent is not None:
        hold = hold.parent
    return hold.edge()


def owner_of_graphs(graph: Hold, is_scalar: bool, other: Owner | None) -> Owner:
    """How graphs of one edge are told, of which `other` came first."""
    if other is None:
        return Owner(kinds.NODES, graph, is_scalar)
    if is_behind_gradient(other.hold):
        # To let go of the tensors is not enough where gradients of inputs lead back to them.
        return other
    # Two keys of one dictionary: what grows is the dictionary.
    return Owner(kinds.NODES, as_container(graph, [keys_of(other.hold)]), is_scalar)


def is_behind_gradient(hold: Hold) -> bool:
    """Whether a gradient's graph is what holds."""
    return any(step.how == "graph" and step.parent is not None and step.parent.how == "grad" for step in hold.path())


def container_of(hold: Hold) -> Hold | None:
    """The hold of the first container on the path that has grown; None if a name holds the tensor itself."""
    for step in hold.path():
        if step.how in ("entry", "key", "cache"):
            return step.parent
    return None


def name_of(hold: Hold) -> Hold:
    """The part of a path that a program can let go of where no container is to be emptied: it ends before kept frames
    and before what is inside an object without a name."""
    for step in hold.path():
        if step.how in ("inside", "frame") and step.parent is not None:
            return step.parent
    return holder_of(hold)


def keys_of(hold: Hold) -> tuple[str, ...]:
    """The keys of dictionaries on a path."""
    return tuple(step.name for step in hold.path() if step.how == "item")


def as_container(hold: Hold, others: Iterable[tuple[str, ...]] | None = None) -> Hold:
    """The same path with a key of a dictionary told as one entry of many, where many keys have grown: the first key, or the first
    that is another one on the paths with the keys `others`."""
    path = list(hold.path())
    items = [index for index, step in enumerate(path) if step.how == "item"]
    # Gradients of modules are told together, whichever of them have more.
    if others is not None and not any(step.how == "grad" for step in path):
        keys, others = keys_of(hold), list(others)
        items = [index for at, index in enumerate(items) if any(other[at : at + 1] != keys[at : at + 1] for other in others)]
    if not items:
        return hold
    at = items[0]
    copied = path[at - 1]
    for index, step in enumerate(path[at:]):
        how, name = ("entry", "") if index == 0 else (step.how, step.name)
        copied = Hold(copied, how, name, step.of, step.size, step.most)
    return copied


def why(kind: str, hold: Hold, is_scalar: bool, has_graph: bool = False, is_carried: bool = False) -> tuple[str, str]:
    """The cause and the remedy; `is_carried` if more and more is held by as many entries of containers."""
    ways = {step.how for step in hold.path()}
    if is_behind_gradient(hold):
        return _GRADIENTS_IN_CONTAINER if is_kept_in_container(hold) else _GRADIENTS
    is_kept_with_graph = has_graph and kind in (kinds.VALUE, kinds.KEPT_GRADIENT)
    if kind in (kinds.ACTIVATION, kinds.NODES) or "graph" in ways or is_kept_with_graph:
        cause, remedy = _graph(hold, is_scalar, is_carried, ways)
        are_results = kind == kinds.VALUE and (cause, remedy) == _RESULTS
        # Their values stay when the graph is cut.
        return (cause, f"{remedy} The values stay then: bound the list or cache too.") if are_results else (cause, remedy)
    if kind == kinds.LIBRARY and hold.how == "inside" and hold.parent is None:
        return _NOBODY
    if kind in _CAUSES:
        return _CAUSES[kind]
    if "frame" in ways:
        return _EXCEPTION
    if "hook" in ways or any(step.name.endswith("_hooks") for step in hold.path()):
        return _HOOK
    if "cache" in ways:
        return _MEMOISED
    return _VALUES


def is_of_graph(cause: str) -> bool:
    """Whether it is that a graph is kept alive."""
    return cause.startswith("a graph is kept alive")


def _graph(hold: Hold, is_scalar: bool, is_carried: bool, ways: set[str]) -> tuple[str, str]:
    if "frame" in ways:
        return _EXCEPTION
    if is_scalar:
        return (
            "a graph is kept alive by a loss that is kept",
            "Keep the number, not the tensor: `losses.append(loss.item())`, `total += loss.item()`, or "
            "`loss.detach()`.",
        )
    if container_of(hold) is None or (is_carried and entries_of(hold) is not None):
        return (
            "a graph is kept alive by a state that is carried from step to step",
            "Cut the graph between steps: `state = state.detach()` before the next step (each tensor of it), or run under "
            "`torch.no_grad()` where nothing is learned.",
        )
    return _RESULTS


def entries_of(hold: Hold) -> int | None:
    """How many tensors the containers on a path have at most, if that are few: averages by name, `(h, c)` of a recurrent
    network, a list of those of its layers. As many that hold more with each step are carried on; more and more of them are
    results that are kept."""
    steps = holder_of(hold).path()
    count = math.prod(step.size for step in steps if step.how == "entry")
    is_other = any(step.how in ("key", "cache") for step in steps)
    return count if count <= NAMED_KEYS and not is_other else None


_RESULTS = (
    "a graph is kept alive by results that are kept",
    "Run under `torch.no_grad()` or `torch.inference_mode()` where nothing is learned, or keep `output.detach()` "
    "(`output.detach().cpu()` to free the device).",
)
_GRADIENTS = (
    "a graph is kept alive by gradients, which `backward(create_graph=True)` gives a graph of their own",
    "Set every `.grad` to None once it was used (`optimizer.zero_grad()`; writing zeros into it is not enough), or use "
    "`torch.autograd.grad(..., create_graph=True)`, whose results go with their names.",
)
_GRADIENTS_IN_CONTAINER = (
    _GRADIENTS[0],
    "Drop tensors that are kept with their gradients (`kept.detach()` has none), and set every `.grad` to None once it was "
    "used; or use `torch.autograd.grad(..., create_graph=True)`, whose results go with their names.",
)
_EXCEPTION = (
    "an exception that is kept holds the frames it went through",
    "Keep `str(error)` or `traceback.format_exc()`, not the exception, or set `error.__traceback__ = None`.",
)
_HOOK = (
    "a hook keeps values",
    "Clear what the hook gathers after each step, keep numbers or host copies, or remove the hook when it has done its work.",
)
_MEMOISED = (
    "a memoised function keeps its arguments and results",
    "Do not memoise functions of tensors; bound the cache (`maxsize`), or keep numbers as keys.",
)
_NOBODY = (
    "nothing in Python leads to it: a reference cycle inside PyTorch's graphs, which no collector sees, or a library's cache",
    "After `backward(create_graph=True)` set every `.grad` to None, or use `torch.autograd.grad`; in a custom function keep "
    "inputs and outputs with `ctx.save_for_backward`, not as attributes. Else look for a cache of the library.",
)
_VALUES = (
    "values are kept",
    "Keep only what you need of each (`value.item()`, or a host copy), bound the list or cache, and drop old entries.",
)
LONGER = (
    "a tensor is rebuilt from itself in each step, longer every time",
    "Keep what you need of each step (a number, or a host copy), bound its length (`seen[-1000:].clone()`), or start again "
    "each epoch.",
)
COPIED = (
    "a container is copied in each step, with more in it every time",
    "Keep what you need of each step (a number, or a host copy), bound the container, or clear it each epoch. Of a metric that "
    "keeps lists call `update()` in each step, which copies nothing, and `reset()` after an epoch.",
)
# What looks alone tell: no storage of it outlives its step.
REBUILT = (LONGER[0], COPIED[0])
HOLDER_NOT_KNOWN = "holder not known: other threads were computing"
NOT_LOOKED = (
    "what this line makes outlives its steps; its holder could not be looked for, as other threads never rest",
    "Let the other threads wait at the end of a step once in a while, or watch a run in which they do not compute.",
)
_CAUSES = {
    kinds.SLICE: (
        "kept slices keep the whole storage they were cut from",
        "Keep a copy of the part you need: `part.clone()`, or `part.cpu()`.",
    ),
    kinds.PARAMETER: (
        "models are made again and again, and kept",
        "Build or copy the model once. To keep copies for a record, put them on the host "
        "(`{k: v.cpu() for k, v in model.state_dict().items()}`).",
    ),
    kinds.OPTIMIZER_STATE: (
        "optimizer state is made again and again, and kept",
        "Make the optimizer once, before the loop. To replace it, drop everything that refers to the old one (schedulers, "
        "lists); to change its rate, set `lr`.",
    ),
    kinds.INPUT: (
        "inputs that require gradients are kept",
        "Keep `x.detach()` of an input, or drop it after backward.",
    ),
    kinds.GRADIENT_OF_INPUT: (
        "kept inputs keep their gradients",
        "Keep what you need of the gradient (`x.grad.cpu()`), then set `x.grad = None`, or use `torch.autograd.grad`, which "
        "returns gradients without storing them.",
    ),
    kinds.KEPT_GRADIENT: (
        "gradients are kept",
        "Keep what you need of a gradient (a number, or `x.grad.cpu()`), and drop the rest.",
    ),
    kinds.GRADIENT_OF_PARAMETER: (
        "gradients of models that are kept",
        "Drop models that are replaced, and their optimizers.",
    ),
    kinds.CYCLE: (
        "objects that refer to each other hold tensors until Python's collector comes",
        "Break the cycle: a weak reference (`weakref.ref`) to the owner, no closure over `self` that `self` stores, or "
        "`obj.callback = None` when it is done.",
    ),
    kinds.LIBRARY: (
        "something that the program does not hold by name keeps values",
        "Look for a cache of the library that made them, and how to clear or bound it.",
    ),
}


def object_of(finding: Finding, first_told: dict[str, int]) -> dict[str, Any]:
    """A finding for programs: what both watches know of it."""
    return {
        "verdict": finding.is_verdict and not finding.is_note,
        "note": finding.is_note,
        "bytes_per_step": round(finding.bytes_per_step),
        "objects_per_step": round(finding.objects_per_step, 3),
        "nodes_per_step": round(finding.nodes_per_step, 3),
        "node_bytes_per_step": round(finding.node_bytes_per_step),
        "line": finding.line,
        "lines": finding.lines,
        "files": finding.files,
        "kind": finding.kind,
        "held_by": finding.held_by,
        "path": finding.path,
        "cause": finding.cause,
        "remedy": finding.remedy,
        "first_told_at_step": first_told.get(finding.line + finding.kind, finding.seen_at_step),
    }
