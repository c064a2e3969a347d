"""A page of `plimsoll view` in a browser: shown, pressed and asked. The checks themselves are in `check_page.py`."""

import json
import pathlib
import subprocess

DATA = pathlib.Path(__file__).parent.parent / "data"


def sample(name):
    """The file of a sample, in the sample's own folder."""
    return DATA / name / f"{name}.pickle.gz"


class Page:
    """A page in the browser, with the words of the checks."""

    def __init__(self, browser, plimsoll, folder):
        self.browser, self.plimsoll, self.folder = browser, plimsoll, folder

    def show(self, name, width=1360, height=900):
        output = self.folder / f"{name}.html"
        if not output.exists():
            subprocess.run([self.plimsoll, "view", sample(name), "-o", output], check=True, stdout=subprocess.DEVNULL)
        self.browser.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)
        self.browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.browser.open(output.as_uri())
        self.browser.until("window.plimsoll && plimsoll.picture.answer()")
        self.settle()

    def settle(self):
        """Waits until what was asked for is drawn."""
        self.browser.run("new Promise((done) => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 60))")

    def value(self, script):
        return self.browser.run(script)

    def text(self, selector):
        return self.value(f"document.querySelector({json.dumps(selector)}).innerText")

    def texts(self, selector):
        return self.value(f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.innerText)")

    def press(self, selector):
        """Clicks the middle of an element, as a hand does."""
        x, y = self.value(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{ block: 'center' }});"
            " const r = e.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]; })()"
        )
        self.browser.click(x, y)
        self.settle()

    def window(self):
        return self.value("(({ from, to, low, high }) => ({ from, to, low, high }))(plimsoll.state)")

    def on_picture(self, x, y):
        """A place of the picture, from its upper left corner, on the screen."""
        left, top = self.value(
            "(() => { const c = document.getElementById('picture'); c.scrollIntoView({ block: 'center' });"
            " const r = c.getBoundingClientRect(); return [r.left, r.top]; })()"
        )
        return left + x, top + y

    def shapes(self):
        return self.value("plimsoll.picture.answer().found.shapes")

    def place_of(self, shape):
        """The middle of what is to be seen of an allocation, in the picture."""
        return self.value(
            f"(() => {{ const s = {json.dumps(shape)}; const p = plimsoll.picture; const w = plimsoll.state;"
            " return [p.x((Math.max(s.born, w.from) + Math.min(s.died, w.to)) / 2), p.y(s.offset + s.bytes / 2)]; })()"
        )
