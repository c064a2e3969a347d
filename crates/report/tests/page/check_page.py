"""Looks at the page of `plimsoll view` in a headless Chromium without a network: python check_page.py PLIMSOLL CHROMIUM.

What the page says is compared with what Python's own pickle reads from the same file, and with `plimsoll report`. The page
that answers itself and the page that asks the server must give the same answers.
"""

import gzip
import json
import pathlib
import pickle
import subprocess
import sys
import tempfile
import time
import traceback

from browser import Browser
from page import Page, sample

CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def snapshot(name):
    """A file of our own, read by Python itself."""
    return pickle.loads(gzip.decompress(sample(name).read_bytes()))


def report(page, name):
    output = subprocess.run([page.plimsoll, "report", sample(name), "--format", "json"], check=True, capture_output=True)
    return json.loads(output.stdout)


@check
def the_page_loads_without_a_network(page):
    page.show("clean_training")
    assert page.text("h1") == "clean_training.pickle.gz"
    requests = [address for address in page.browser.requests() if not address.startswith(("file:", "data:", "blob:"))]
    assert requests == [], requests
    assert page.browser.trouble() == [], page.browser.trouble()
    refused = page.value("fetch('http://127.0.0.1:9/').then(() => 'answered', () => 'refused')")
    assert refused == "refused"
    assert any("Content Security Policy" in str(entry) for entry in page.browser.trouble())


@check
def the_stack_at_the_peak_adds_up_to_the_reports_peak(page):
    page.show("clean_training")
    peak = report(page, "clean_training")["peak_bytes"]
    assert page.value("plimsoll.picture.drawn.view") == "kind"
    assert page.value("plimsoll.picture.drawn.columns") > 300
    column = page.value("plimsoll.picture.columnAt(plimsoll.store.device().peak.at)")
    assert sum(column["parts"]) == peak, (column, peak)
    page.press('#views [data-name="site"]')
    column = page.value("plimsoll.picture.columnAt(plimsoll.store.device().peak.at)")
    assert sum(column["parts"]) == peak
    assert page.value("plimsoll.picture.drawn.view") == "site"


@check
def a_click_on_an_allocation_shows_its_stack(page):
    for name in ["oom_activations", "clean_training"]:
        page.show(name)
        page.press('#views [data-name="single"]')
        assert page.value("plimsoll.picture.drawn.shapes") == len(page.shapes()) > 100
        events = snapshot(name)["device_traces"][0]
        clicked = 0
        for shape in page.shapes()[:40:4]:
            if shape["born"] == 0:
                continue
            event = events[shape["born"] - 1]
            assert event["action"] == "alloc" and event["addr"] == int(shape["address"], 16)
            x, y = page.place_of(shape)
            page.browser.click(*page.on_picture(x, y))
            page.settle()
            assert page.value("plimsoll.state.selected.life") == shape["life"]
            assert f"({event['size']:,} bytes)" in page.text("#panel .facts")
            frames = [f"{frame['name']} {frame['filename']}:{frame['line']}" for frame in event["frames"]]
            assert (page.texts("#stack li") == frames) if frames else "No stack" in page.text("#panel")
            clicked += 1
        assert clicked >= 5, clicked


@check
def an_allocation_has_the_colour_of_its_kind(page):
    page.show("oom_activations")
    page.press('#views [data-name="single"]')
    page.value("plimsoll.store.change({ here: 0 })")
    page.settle()
    shape = max(page.shapes(), key=lambda shape: shape["bytes"])
    x, y = page.place_of(shape)
    pixel = page.value(f"[...document.getElementById('picture').getContext('2d').getImageData({round(x)}, {round(y)}, 1, 1).data]")
    wanted = page.value(f"getComputedStyle(document.documentElement).getPropertyValue('--kind-{shape['kind']}').trim()")
    assert "#" + "".join(f"{part:02x}" for part in pixel[:3]) == wanted, (pixel, wanted)


@check
def the_wheel_zooms_about_the_pointer(page):
    page.show("clean_training")
    before = page.window()
    x, y = 400, 150
    about = page.value(f"plimsoll.picture.positionAt({x})")
    for _ in range(5):
        page.browser.mouse("mouseWheel", *page.on_picture(x, y), deltaX=0, deltaY=-120)
    page.settle()
    after = page.window()
    assert after["to"] - after["from"] < (before["to"] - before["from"]) / 3, after
    assert abs(page.value(f"plimsoll.picture.positionAt({x})") - about) < 1
    assert (after["low"], after["high"]) == (before["low"], before["high"])
    assert page.value("plimsoll.picture.drawn.answerTo") < before["to"] - 1, "the window was not asked for"
    page.browser.mouse("mouseWheel", *page.on_picture(x, y), deltaX=0, deltaY=-120, modifiers=8)
    page.settle()
    assert page.window()["high"] < after["high"], "Shift zooms in bytes"


@check
def dragging_and_keys_move_the_window(page):
    page.show("clean_training")
    page.press("#zoom-in")
    page.press("#zoom-in")
    before = page.window()
    x, y = page.on_picture(500, 150)
    page.browser.mouse("mouseMoved", x, y)
    page.browser.mouse("mousePressed", x, y, button="left", clickCount=1)
    page.browser.mouse("mouseMoved", x - 100, y, button="left", buttons=1)
    page.browser.mouse("mouseReleased", x - 100, y, button="left", clickCount=1)
    page.settle()
    dragged = page.window()
    assert dragged["from"] > before["from"] and abs((dragged["to"] - dragged["from"]) - (before["to"] - before["from"])) < 1e-6
    page.value("document.getElementById('picture').focus()")
    page.browser.key("ArrowLeft")
    assert page.window()["from"] < dragged["from"]
    page.browser.key("+")
    assert page.window()["to"] - page.window()["from"] < dragged["to"] - dragged["from"]
    page.browser.key("Home")
    assert page.window()["from"] == 0 and page.window()["to"] == page.value("plimsoll.store.device().last") + 1
    here = page.value("plimsoll.state.here")
    page.browser.key("ArrowRight", modifiers=8)
    assert page.value("plimsoll.state.here") == here + 1


@check
def two_fingers_zoom(page):
    page.show("clean_training")
    page.browser.call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
    try:
        before = page.window()
        (a, y), (b, _) = page.on_picture(400, 150), page.on_picture(500, 150)
        page.browser.touch("touchStart", [(a, y), (b, y)])
        for step in range(1, 6):
            page.browser.touch("touchMove", [(a - 20 * step, y), (b + 20 * step, y)])
        page.browser.touch("touchEnd", [])
        page.settle()
        after = page.window()
        share = (after["to"] - after["from"]) / (before["to"] - before["from"])
        assert 0.25 < share < 0.45, f"three times as far apart, but {share} of the span"
    finally:
        page.browser.call("Emulation.setTouchEmulationEnabled", enabled=False)


@check
def the_keyboard_alone_reaches_allocations_and_findings(page):
    page.show("leak_losses_keep_graph")
    page.value("document.getElementById('picture').focus()")
    page.browser.key("Enter")
    page.settle()
    assert page.value("plimsoll.state.view") == "single"
    page.browser.key("Enter")
    page.settle()
    assert "Size" in page.text("#panel")
    found = report(page, "leak_losses_keep_graph")["findings"]
    assert found and len(page.texts("#findings button")) == len(found)
    for _ in range(80):
        page.browser.key("Tab")
        if page.value("document.activeElement.closest('#findings') !== null"):
            break
    else:
        raise AssertionError("Tab never came to the findings")
    page.browser.key("Enter")
    page.settle()
    assert page.value("plimsoll.state.finding") == 0
    for part in ["cause", "message", "advice"]:
        # The style makes a cause's first letter a capital.
        assert found[0][part].lower() in page.text("#findings").lower(), part
    site = found[0]["site"]
    if site and site["file"]:
        chosen = page.value("plimsoll.tables.site(plimsoll.state.site)")
        assert (chosen["file"], chosen["line"]) == (site["file"], site["line"])


@check
def segments_at_the_end_are_those_of_the_file(page):
    page.show("oom_activations")
    page.value("plimsoll.store.change({ here: plimsoll.store.device().last })")
    page.press('#panels [data-name="segments"]')
    wanted = sorted(f"0x{segment['address']:x}" for segment in snapshot("oom_activations")["segments"])
    assert sorted(page.texts("#segments code")) == wanted
    assert page.value("[...document.querySelectorAll('#segments canvas')].every((one) => one.getContext('2d').getImageData(0, 4, one.width, 1).data.some((part) => part > 0))")


@check
def segments_that_are_not_listed_are_counted(page):
    page.show("oom_leaky")
    page.value("plimsoll.store.change({ here: plimsoll.store.device().last })")
    page.press('#panels [data-name="segments"]')
    segments = snapshot("oom_leaky")["segments"]
    active = [block for segment in segments for block in segment["blocks"] if block["state"].startswith("active")]
    used = sum(-(-max(1, block["requested_size"]) // 512) * 512 for block in active)
    reserved = sum(segment["total_size"] for segment in segments)
    words = [f"{count / 2**20:.2f} MiB" for count in (reserved, reserved - used)]
    assert len(segments) > len(page.texts("#segments code")) == 256
    assert f"{len(segments)} segments, {words[0]} from the driver, {words[1]} of it free" in page.text("#panel"), page.text("#panel")
    assert f"and {len(segments) - 256} segments more" in page.text("#panel")


@check
def what_is_alive_and_the_flame_graph_follow_the_cursor(page):
    page.show("clean_training")
    peak = report(page, "clean_training")
    top = peak["peak_by_site"][0]
    row = page.texts("#alive tbody tr")[0]
    assert f":{top['line']}" in row or not top["file"], (row, top)
    assert page.value("plimsoll.panels.moment().live_bytes") == peak["peak_bytes"]
    page.press('#panels [data-name="flame"]')
    boxes = len(page.texts("#flame button"))
    assert boxes > 5 and page.texts("#flame button")[0] == "everything"
    page.value("plimsoll.store.change({ here: 3 })")
    page.settle()
    assert len(page.texts("#flame button")) < boxes
    assert "Event 3" in page.text("#here")


@check
def lines_can_be_searched(page):
    page.show("clean_training")
    count = len(page.texts("#lines li"))
    page.press("#search")
    page.browser.call("Input.insertText", text="scenarios.py:11")
    page.settle()
    assert 1 == len(page.texts("#lines li")) < count
    page.press("#lines button")
    assert "scenarios.py:11" in page.text("#filter-text")
    page.press('#views [data-name="single"]')
    site = page.value("plimsoll.state.site")
    assert page.value(f"plimsoll.picture.answer().found.shapes.every((one) => plimsoll.tables.siteOf(one.stack) === {site})")
    page.press("#filter-clear")
    assert page.value("plimsoll.state.site") is None


@check
def light_and_dark_follow_the_system_and_the_button(page):
    for theme in ["dark", "light"]:
        page.browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        page.show("clean_training")
        assert page.value("document.documentElement.dataset.theme") == theme
    light = page.value("getComputedStyle(document.body).backgroundColor")
    page.press("#theme")
    assert page.value("document.documentElement.dataset.theme") == "dark"
    assert page.value("getComputedStyle(document.body).backgroundColor") != light


@check
def a_narrow_screen_needs_no_scrolling_sideways(page):
    page.show("clean_training", width=380, height=800)
    for panel in ["alive", "allocation", "segments", "flame"]:
        page.press(f'#panels [data-name="{panel}"]')
        assert page.value("document.documentElement.scrollWidth <= 380"), panel


@check
def times_under_the_picture_grow_and_have_equal_digits(page):
    page.show("made_several_devices")
    page.value(
        "(() => { window.written = []; const draw = CanvasRenderingContext2D.prototype.fillText;"
        " CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {"
        " if (this.canvas.id === 'picture') window.written.push(text); return draw.call(this, text, ...place); }; })()"
    )
    page.press("#zoom-in")
    written = page.value("window.written")
    times = [text.removesuffix(" ms") for text in written if text.endswith(" ms")]
    times = times[-len(times) // written.count("event"):]
    assert len(times) >= 3 and len({len(time.partition(".")[2]) for time in times}) == 1, times
    assert sorted(times, key=float) == times, times


@check
def the_picture_is_described_in_words(page):
    page.show("clean_training")
    last = page.value("plimsoll.store.device().last")
    assert f"Events 0 to {last}" in page.text("#status")
    label = page.value("document.getElementById('picture').getAttribute('aria-label')")
    assert label.startswith("Memory over time by kind. Events 0 to"), label
    unnamed = "[...document.querySelectorAll('button, select, input')].filter((one) => !one.hidden && !(one.innerText || one.getAttribute('aria-label') || one.closest('label')))"
    assert page.value(f"{unnamed}.length") == 0
    x, y = page.on_picture(400, 200)
    page.browser.mouse("mouseMoved", x, y)
    page.settle()
    assert "MiB" in page.text("#tip")


QUESTIONS = """(async () => {
  const { answers, store } = window.plimsoll;
  const found = [];
  for (const [device, { last, height, top_sites: sites }] of store.state.meta.devices.entries()) {
    const start = Math.max(0, last - 20);
    for (const [from, to, columns] of [[0, last, 10], [0, last, 900], [3, 90, 2000], [start, last, 7], [50, 50, 1]]) {
      for (const by of ["kind", "site"]) found.push(await answers.timeline(device, by, from, to, columns));
      for (const [low, high, site] of [[0, height, null], [height / 3, height / 2, null], [0, height, sites[0]]]) {
        const window = { from, to, low: Math.floor(low), high: Math.ceil(high), columns, rows: 300, site };
        found.push(await answers.shapes(device, window));
      }
    }
    for (let at = 0; at <= last; at += Math.ceil(last / 40)) found.push(await answers.moment(device, at));
    for (const life of [0, 5, 7]) found.push(await answers.allocation(device, life));
  }
  return JSON.stringify(found);
})()"""


def rounded(value):
    """Densities are sums of fractions, which two languages may round differently by one."""
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in value.items() if name != "rest"}
    return [rounded(part) for part in value] if isinstance(value, list) else value


@check
def the_server_and_the_page_give_the_same_answers(page):
    # Ordinary ones, and private pools, expandable segments, several devices and pinned host memory.
    for name in [
        "clean_training", "oom_activations", "leak_losses_keep_graph",
        "graph_pool", "expandable_segments", "made_several_devices", "made_pinned_host",
        # More segments than an answer lists.
        "oom_leaky",
    ]:
        page.show(name)
        own = json.loads(page.value(QUESTIONS))
        command = [page.plimsoll, "view", sample(name), "--serve", "--port", "0"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            words = server.stdout.readline().split()
            address = next(word for word in words if word.startswith("http://127.0.0.1:"))
            page.browser.call("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=-1)
            page.browser.open(address)
            page.browser.until("window.plimsoll && plimsoll.picture.answer()")
            page.settle()
            served = json.loads(page.value(QUESTIONS))
            requests = page.browser.requests()
            assert all(one.startswith((address, "data:")) for one in requests), requests
            assert any("/timeline?" in one for one in requests)
            assert page.browser.trouble() == [], page.browser.trouble()
        finally:
            server.terminate()
            server.wait(20)
        assert len(own) == len(served) > 40
        for mine, theirs in zip(own, served):
            assert rounded(mine) == rounded(theirs), (name, mine, theirs)
            pairs = zip(mine.get("rest", []), theirs.get("rest", []))
            assert all(abs(a - b) <= 1 for a, b in pairs), name


def main():
    plimsoll, chromium, *only = sys.argv[1:]
    start = time.monotonic()
    failed = 0
    checks = [one for one in CHECKS if not only or one.__name__ in only]
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(chromium)
        try:
            for one in checks:
                try:
                    one(Page(browser, plimsoll, pathlib.Path(folder)))
                    print(f"{one.__name__} ... ok", flush=True)
                except Exception:
                    failed += 1
                    print(f"{one.__name__} ... FAILED\n{traceback.format_exc()[-3000:]}", flush=True)
        finally:
            browser.close()
    seconds = time.monotonic() - start
    # In the form of pytest, which `cargo xtask test` counts.
    print(f"{failed} failed, {len(checks) - failed} passed in {seconds:.2f}s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
