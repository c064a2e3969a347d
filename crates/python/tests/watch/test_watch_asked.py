"""What a program asks for by itself: the pytest fixture, growth that is excluded, checks between two points, a
notebook's cell."""

import gc
import subprocess
import sys
import warnings
import weakref

import pytest

torch = pytest.importorskip("torch")

import runner  # noqa: E402

watch = runner.load()

FIXTURE = f"""
import sys
sys.path.insert(0, {str(runner.HERE)!r})
import runner
runner.load()
pytest_plugins = ["plimsoll_watch.pytest_plugin"]
"""

TESTS = """
import pytest, torch
kept = []
def grow(watched):
    for _ in range(30):
        kept.append(torch.ones(64, 64))
        watched.step()
def test_leaks(plimsoll_watch):
    grow(plimsoll_watch)
def test_is_wanted(plimsoll_watch):
    plimsoll_watch.exclude("kept")
    grow(plimsoll_watch)
def test_is_clean(plimsoll_watch):
    for _ in range(30):
        torch.ones(64, 64)
        plimsoll_watch.step()
@pytest.mark.xfail(strict=True)
def test_is_known_to_leak(request):
    grow(request.getfixturevalue("plimsoll_watch"))
"""


@pytest.mark.parametrize("is_alone", [False, True])
def test_the_fixture(is_alone, tmp_path):
    alone = FIXTURE.replace("pytest_plugins = [", "from plimsoll_watch.pytest_plugin import plimsoll_watch\nothers = [")
    (tmp_path / "conftest.py").write_text(alone if is_alone else FIXTURE)
    (tmp_path / "test_them.py").write_text(TESTS)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True, text=True, timeout=120, cwd=tmp_path,
    )  # fmt: skip
    if is_alone:
        # Without the hooks beside it the test itself passes, and what the watch says of it comes after it.
        assert ran.returncode == 1 and "3 passed, 1 xfailed, 1 error" in ran.stdout, ran.stdout
    else:
        assert ran.returncode == 1 and "1 failed, 2 passed, 1 xfailed" in ran.stdout, ran.stdout
    assert "grows 16.0 KiB a step" in ran.stdout and "test_them.py:6" in ran.stdout
    assert f"{'ERROR' if is_alone else 'FAILED'} test_them.py::test_leaks" in ran.stdout


def grow(kept, steps=30):
    for _ in range(steps):
        kept.append(torch.ones(64, 64))
        watch.step()


def test_a_line_and_a_name_that_are_excluded():
    line = f"test_watch_asked.py:{grow.__code__.co_firstlineno + 2}"
    for what in (line, "kept"):
        with watch(error_on_leak=True, exclude=[what]) as watched:
            grow([])
        assert watched.findings == []
    with watch(error_on_leak=True, exclude="kept"):
        grow([])
    with pytest.raises(watch.LeakError):
        with watch(error_on_leak=True, exclude=["keep", "watch_asked.py:1"]):
            grow([])


def test_a_decorated_function_excludes_at_every_call():
    @watch(error_on_leak=True, exclude=["kept"])
    def run():
        grow([])

    run()
    run()
    table = torch.ones(8)
    last, watched = weakref.ref(table), watch(exclude=[table])
    del table
    assert last() is None and watched.findings == []


def test_an_optimizer_without_groups():
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
    optimizer.param_groups.clear()
    with watch() as watched:
        for _ in range(3):
            optimizer.step()
    assert watched._session.steps.count == 3


def test_every_shortage_that_a_program_catches_counts():
    def allocate(shortages):
        try:
            bytearray(1 << 62)
        except MemoryError as error:
            shortages.raised(error)
            raise

    with watch() as watched:
        shortages = watched._session.shortages
        shortages.stop()
        for _ in range(3):
            # The next error takes the address of the one before it, which is let go of.
            try:
                allocate(shortages)
            except MemoryError as error:
                shortages.raised(error)
        assert shortages.count == 3


def test_tensors_that_are_excluded_are_not_kept_alive():
    kept = []
    with watch() as watched:
        for _ in range(30):
            kept.append(torch.ones(64, 64))
            watched.exclude(kept[-1])
            watch.step()
        last = weakref.ref(kept[-1])
        storage = kept[-1].untyped_storage()._cdata
        assert storage in watched._session.excluded.keys()
        kept.clear()
        assert last() is None and not watched._session.excluded.keys()
    assert watched.findings == []
    with pytest.raises(TypeError, match="not list"):
        watch(exclude=[kept]).__enter__()
    with watch():
        pass


def test_a_check_tells_who_has_more_than_at_first():
    held, wanted, loss = [torch.ones(8)], [], None
    with watch.LeakChecker(error_on_leak=True, exclude=["wanted"]) as checker:
        for _ in range(3):
            loss = torch.ones(16)
            wanted.append(torch.ones(16))
        # A new name has more than nothing; from here on it is replaced, and that is no more.
        with pytest.raises(watch.LeakError, match="64 B more .1 storages; .16,.., value, held by local `loss`"):
            checker.check_leaks()
        held += [torch.zeros(128), torch.zeros(128)]
        loss = None
        with pytest.raises(watch.LeakError) as error:
            checker.check_leaks()
        said = str(error.value)
        assert "1.0 KiB more (2 storages; (128,)), value, held by local `held` of" in said and "list of 3" in said
        assert "made at test_watch_asked.py:" in said and "wanted" not in said and "loss" not in said
        del held[1:]
        assert checker.check_leaks() == []
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None
    assert loss is None and len(wanted) == 3


def test_a_check_warns_and_lets_cycles_go():
    checker = watch.LeakChecker(lines=False)
    assert checker.check_leaks() == []
    here = []
    here.append([here, torch.ones(64)])
    del here
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert checker.check_leaks() == []
    kept = torch.ones(64)
    checker.exclude(kept)
    assert checker.check_leaks() == []
    more = torch.ones(32)
    with pytest.warns(watch.LeakWarning, match="128 B more"):
        (found,) = checker.check_leaks()
    assert (found.bytes, found.storages, found.shapes, found.line) == (128, 1, [(32,)], None)
    assert found.held_by == "local `more` of test_a_check_warns_and_lets_cycles_go()"
    del kept, more
    gc.collect()


def test_one_checker_for_the_program():
    watch._checker._checker = None
    assert watch.check_leaks() == []
    kept = torch.ones(32)
    with pytest.raises(watch.LeakError, match="local `kept`"):
        watch.check_leaks(error_on_leak=True)
    del kept
    assert watch.check_leaks() == []


class Shell:
    """What `%load_ext` and a cell need of a notebook's shell."""

    def __init__(self):
        self.magics = {}

    def register_magic_function(self, function, magic_kind, magic_name):
        self.magics[magic_kind, magic_name] = function

    def run_cell(self, cell):
        exec(compile(cell, "<cell>", "exec"), {"torch": torch, "watch": watch})


CELL = "kept = []\nfor _ in range(30):\n    kept.append(torch.ones(64, 64))\n    watch.step()\n"


def test_a_cell(capsys):
    shell = Shell()
    watch.load_ipython_extension(shell)
    shell.magics["cell", "watch"]("", CELL)
    said = capsys.readouterr().out
    assert "1 finding" in said and "<cell>:3" in said
    shell.magics["cell", "watch"]("<cell>:3", CELL)
    assert "0 findings" in capsys.readouterr().out


def test_a_cell_in_ipythons_own_shell(capsys):
    shell = pytest.importorskip("IPython.testing.globalipapp").get_ipython() or pytest.importorskip(
        "IPython.core.interactiveshell"
    ).InteractiveShell.instance()
    watch.load_ipython_extension(shell)
    shell.user_ns.update(torch=torch, marks=watch)
    shell.run_cell_magic("watch", "", CELL.replace("watch.step", "marks.step"))
    said = capsys.readouterr().out
    assert "1 finding" in said and "ipython-input" in said and "kept" in said
    shell.user_ns.clear()
    watch.unload_ipython_extension(shell)
    assert "watch" not in shell.magics_manager.magics["cell"]
