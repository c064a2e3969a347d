"""Runs the programs of `leaks/` and `clean/` under the watch, each in a process of its own that is forked after
PyTorch was imported, which takes seconds. Not a test by itself; `test_watch_programs.py` asks it."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import importlib.util
import json
import os
import pathlib
import re
import sys
import tempfile
import traceback
import weakref

HERE = pathlib.Path(__file__).parent
PACKAGE = HERE.parent.parent / "python" / "plimsoll" / "watch"


def load():
    """The watch as a package of its own, as the folder run as a program has it."""
    if "plimsoll_watch" not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            "plimsoll_watch", PACKAGE / "__init__.py", submodule_search_locations=[str(PACKAGE)]
        )
        module = importlib.util.module_from_spec(spec)
        sys.modules["plimsoll_watch"] = module
        spec.loader.exec_module(module)
    return sys.modules["plimsoll_watch"]


@dataclasses.dataclass
class Ran:
    status: int
    output: str
    errors: str
    report: dict | None


def forked(work) -> Ran:
    """Calls `work(report_path)` in a forked process."""
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, name) for name in ("out", "err", "report.json")]
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            status = 70
            try:
                for number, name in ((1, files[0]), (2, files[1])):
                    os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), number)
                sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)
                _use_one_thread()
                work(files[2])
                status = 0
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
            except BaseException:
                traceback.print_exc()
            finally:
                with contextlib.suppress(Exception):
                    sys.stdout.flush()
                    sys.stderr.flush()
                os._exit(status)
        _, ended = os.waitpid(child, 0)
        out, errors = (pathlib.Path(name).read_text() for name in files[:2])
        report = json.loads(pathlib.Path(files[2]).read_text()) if os.path.exists(files[2]) else None
        return Ran(os.waitstatus_to_exitcode(ended), out, errors, report)


def _use_one_thread() -> None:
    """Threads of the process that forked are not there in this one, and would be waited for."""
    import torch

    torch.set_num_threads(1)


def expected(program: pathlib.Path) -> tuple[list[str], list[str], str]:
    """What a leak's file says of it: its lines, kinds and holder."""
    source = program.read_text()
    lines = [f"{program.name}:{at}" for at, line in enumerate(source.splitlines(), 1) if line.endswith("# made")]
    kinds = re.search("^# kind: (.*)$", source, re.M)[1].split(" | ")
    return lines, kinds, re.search("^# holder: (.*)$", source, re.M)[1]


def _use(device: str | None) -> None:
    if device is not None:
        import torch

        torch.set_default_device(device)


def watched(program: pathlib.Path, *options: str, device: str | None = None) -> Ran:
    """The command on a program, with its report as JSON."""
    load()
    from plimsoll_watch._command import main

    def work(report):
        _use(device)
        main(["--format", "json", "--output", report, *options, str(program)])

    return forked(work)


def plain(program: pathlib.Path, device: str | None = None) -> Ran:
    """The program alone."""
    load()
    from plimsoll_watch._program import Program

    def work(_):
        _use(device)
        alone = Program(None, [str(program)])
        alone.run(lambda error: None)
        alone.leave(0)

    return forked(work)


def dropped(program: pathlib.Path, at_step: int) -> Ran:
    """Runs until `at_step` and drops there what each verdict names; reports what the finding counted before and
    after."""
    load()
    from plimsoll_watch._program import Program
    from plimsoll_watch._session import Session
    from plimsoll_watch._watch import begin

    def work(report):
        session = Session()
        begin(session)
        counted = []

        def alive(rows, marks):
            return sum(row.bytes for row in rows if row.is_alive()) + sum(mark() is not None for mark in marks)

        def tell(step):
            if step != at_step:
                return
            session.look_now()
            for finding in session.verdicts:
                rows = [row for at, of in session.suspects.items() if str(at) in finding.lines for row in of.rows]
                rows = rows or [row for row in session.making.rows.values() if str(row.place) in finding.lines]
                counted.append((finding, rows, marks_of(finding, session.looks.first_young_node)))
            told = []
            for finding, rows, marks in counted:
                before = alive(rows, marks)
                for path in (finding.path, *(path for _, path in finding.also_held_by)):
                    drop(path)
                told.append({"held_by": finding.held_by, "before": before, "after": alive(rows, marks)})
            pathlib.Path(report).write_text(json.dumps(told))
            os._exit(0)

        session.on_findings = tell
        session.start()
        running = Program(None, [str(program)])
        running.run(lambda error: None)
        running.leave(0)

    return forked(work)


class Mark:
    """Lives as long as the graph node that it is put on."""


def marks_of(finding, old: int) -> list:
    """Marks on the old nodes behind what a finding about nodes names: the latest step's are the loop's own."""
    if finding.kind != "graph nodes on the host":
        return []
    _, _, value = resolve([step for step in finding.path if step["how"] in ("local", "global", "attribute", "item")])
    stack = [tensor.grad_fn for tensor in (value if isinstance(value, list) else [value])[:-4] or [value]]
    marks = []
    while stack and len(marks) < 500:
        node = stack.pop()
        if node._sequence_nr() < old:
            mark = node.metadata.setdefault("mark", Mark())
            marks.append(weakref.ref(mark))
        stack += [after for after, _ in node.next_functions if after is not None and "Accumulate" not in after.name()]
    return marks


def drop(path: list[dict]) -> None:
    """Deletes what a path names: empties the first container that has grown, or lets go of the name."""
    here, name, value = resolve(path)
    if any(step["how"] == "hook" for step in path):
        for hooks in (value._backward_hooks, value._post_accumulate_grad_hooks):
            (hooks or {}).clear()
    elif any(step["how"] == "grad" and path[at + 1]["how"] == "graph" for at, step in enumerate(path[:-1])):
        _forget_gradients(value)
    elif any(step["how"] in ("entry", "key", "cache") for step in path) and _can_be_emptied(value):
        _empty(value)
    else:
        _let_go(here, name)


def resolve(path: list[dict]):
    """What a path leads to before the first container, graph or chain: its owner, its name there, and itself."""
    here, name, value = _root(path[0])
    for step in path[1:]:
        if step["how"] in ("entry", "key", "cache", "graph", "grad", "saved", "frame", "inside", "hook"):
            break
        here, name, value = value, step.get("name"), _inside(value, step)
        if step.get("times", 1) > 1:
            break
    return here, name, value


def _root(step: dict):
    if step["how"] == "loop":
        (loader,) = [one for one in sys.modules["plimsoll_watch._watch"].running().steps.loaders() if one is not None]
        return None, None, loader
    name = step["name"]
    if step["how"] == "local":
        frame = _frame(step["of"])
        return frame, name, frame.f_locals[name]
    module = sys.modules[step["of"]]
    return module, name, getattr(module, name)


def _frame(function: str):
    for frame in sys._current_frames().values():
        while frame is not None:
            if frame.f_code.co_name == function:
                return frame
            frame = frame.f_back
    raise LookupError(f"{function}() is not running")


def _inside(value, step):
    how, name = step["how"], step.get("name")
    if how in ("attribute", "class"):
        return vars(value)[name]
    if how == "item":
        return value[eval(name)]
    if how == "closure":
        return value.__closure__[value.__code__.co_freevars.index(name)].cell_contents
    if how == "default":
        return value.__defaults__[0]
    if how == "local":
        return value.gi_frame.f_locals[name]
    raise LookupError(f"no way to follow {step}")


def _forget_gradients(value) -> None:
    """Of a parameter, or of all that a dictionary has: parameters, or modules that have some."""
    for one in value.values() if isinstance(value, dict) else [value]:
        for parameter in one.parameters() if hasattr(one, "parameters") else [one]:
            parameter.grad = None


def _can_be_emptied(value) -> bool:
    """An iterator that holds containers cannot: its name is to be let go of."""
    return any(hasattr(value, name) for name in ("cache_clear", "clear", "fill"))


def _empty(container) -> None:
    if hasattr(container, "cache_clear"):
        container.cache_clear()
    elif hasattr(container, "clear"):
        container.clear()
    else:
        container.fill(None)


def _let_go(here, name) -> None:
    if hasattr(here, "f_code"):
        here.f_locals[name] = None
        if sys.version_info < (3, 13):
            ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(here), ctypes.c_int(0))
            here.f_locals.clear()
    elif isinstance(here, dict):
        here.pop(eval(name))
    else:
        setattr(here, name, None)
