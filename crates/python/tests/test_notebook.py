"""What notebooks show: by calling the hooks that they call, and in IPython's own shell where it is installed."""

import html

import pytest

import plimsoll as pm
from plimsoll import nn
from plimsoll._cell_memory import CellMemory
from plimsoll._shown import MOST_CHARACTERS


def test_a_tensor_is_shown_with_what_it_is_made_of():
    shown = pm.tensor([[1.0, 2.0], [3.0, 4.0]])._repr_html_()
    assert "tensor([[1., 2.],\n        [3., 4.]])" in shown
    assert "shape (2, 2) · plimsoll.float32 · cpu · 16 B" in shown and "requires grad" not in shown
    assert "requires grad" in nn.Parameter(pm.ones(2))._repr_html_()
    part = pm.zeros(1000)[:2]
    assert "8 B · of a storage of 3.91 KiB" in part._repr_html_()


def test_text_cannot_become_markup():
    class Named(pm.Tensor):
        def __repr__(self):
            return "<script>1 & 2</script>"

    assert "<script>" not in pm.ones(1).as_subclass(Named)._repr_html_()
    assert "&lt;script&gt;1 &amp; 2&lt;/script&gt;" in pm.ones(1).as_subclass(Named)._repr_html_()


def test_a_large_tensor_is_shown_in_part():
    large = pm.zeros(100_000)
    assert len(large._repr_html_()) < 2_000
    pm.set_printoptions(profile="full")
    try:
        shown = large._repr_html_()
        assert MOST_CHARACTERS < len(shown) < MOST_CHARACTERS + 1_000
        assert "more characters; set_printoptions(" in shown
    finally:
        pm.set_printoptions(profile="default")


def test_summaries_are_text_that_is_shown_as_lines():
    # Of a device of its own, with a line that is markup: what others hold is not known.
    device = pm.private_cpu()
    kept = eval(compile("pm.zeros(256, device=device)", "<cell & 'more'>", "eval"), {"pm": pm, "device": device})
    report = pm.memory_report(device)
    assert "<cell & 'more'>:1" in report and kept.nbytes == 1024
    for text in (pm.memory_summary(device), report, pm.cpu.memory_summary()):
        assert isinstance(text, str) and len(text.splitlines()) > 3
        shown = text._repr_html_()
        assert shown.startswith("<pre") and shown.endswith(f">{html.escape(text)}</pre>")
    with pm.profiler.profile() as seen:
        pm.ones(4) + 1
    assert "<pre" in seen.key_averages()._repr_html_() and "add" in seen.key_averages()._repr_html_()


def test_memory_of_work_by_line():
    device, kept = pm.private_cpu(), []
    before = pm.ones(256, device=device)

    def work():
        kept.append(pm.ones(512, device=device))
        (before + 1).sum()

    first = work.__code__.co_firstlineno
    seen = CellMemory.of(work, [device])
    (memory,) = seen.devices
    assert (memory.before_bytes, memory.stayed_bytes, memory.after_bytes) == (1024, 2048, 3072)
    # Its own bytes and those from before, the sum's result (a block of 512) with its operand.
    assert memory.peak_bytes == 1024 + 2048 + 1024 + 512
    lines = {line.line: line for line in memory.lines}
    assert set(lines) == {first + 1, first + 2}
    assert (lines[first + 1].peak_bytes, lines[first + 1].stayed_bytes) == (2048, 2048)
    assert (lines[first + 2].peak_bytes, lines[first + 2].stayed_bytes) == (1024 + 512, 0)
    text = repr(seen)
    assert "peak 4.50 KiB, 1.00 KiB of it from before; 2.00 KiB stayed" in text
    assert "kept.append(pm.ones(512, device=device))" in text and "(before + 1).sum()" in text
    page = seen._repr_html_()
    assert page.count("<tr>") == 3 and "<code>(before + 1).sum()</code>" in page
    kept.clear()
    again = CellMemory.of(lambda: None, [device]).devices[0]
    assert (again.stayed_bytes, again.lines) == (0, [])


def test_work_that_fails_leaves_no_report():
    with pytest.raises(ZeroDivisionError):
        CellMemory.of(lambda: 1 / 0)


def test_in_ipython():
    interactive = pytest.importorskip("IPython.core.interactiveshell", reason="IPython is not installed")
    from IPython.utils.capture import capture_output

    shell = interactive.InteractiveShell.instance()
    try:
        shell.run_cell("%load_ext plimsoll")
        with capture_output() as shown:
            shell.run_cell("import plimsoll as pm\ndevice = pm.private_cpu()\nx = pm.ones(256, device=device)")
            shell.run_cell_magic("memory", "", "y = x + 1\nz = (y * 2).sum().item()\nprint('ran', z)")
        (told,) = [output for output in shown.outputs if "text/html" in output.data]
        assert "ran 1024.0" in shown.stdout
        page = told.data["text/html"]
        assert "peak 3.50 KiB, 1.00 KiB of it from before; 1.00 KiB stayed" in page, page
        assert "<code>y = x + 1</code>" in page and "<code>z = (y * 2).sum().item()</code>" in page
        with capture_output() as shown:
            shell.run_cell_magic("memory", "cpu", "raise ValueError('of the cell')")
        assert "of the cell" in shown.stdout + shown.stderr
        assert "text/html" in shell.display_formatter.format(pm.ones(2))[0]
        shell.run_cell("%unload_ext plimsoll")
        assert "memory" not in shell.magics_manager.magics["cell"]
    finally:
        interactive.InteractiveShell.clear_instance()
