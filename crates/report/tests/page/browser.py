"""A headless Chromium, driven by its debugging pipe: JSON messages that end with a zero byte, on descriptors 3 and 4.

Only Python's standard library. It knows nothing about the page; `check_page.py` does.
"""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time

# Nothing but this machine can be reached: every other name is unknown, and there is no proxy.
OFFLINE = ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--no-proxy-server"]
QUIET = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
]


class Browser:
    """One browser with one page."""

    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix="plimsoll-page-")
        command_out, self.command = os.pipe()
        self.answers, answers_in = os.pipe()

        def descriptors():
            # First out of the way: the pipes themselves may have the numbers 3 and 4.
            os.dup2(command_out, 13)
            os.dup2(answers_in, 14)
            os.dup2(13, 3)
            os.dup2(14, 4)

        arguments = [program, *QUIET, *OFFLINE, "--remote-debugging-pipe", f"--user-data-dir={self.folder}", "about:blank"]
        self.process = subprocess.Popen(
            arguments, preexec_fn=descriptors, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(command_out)
        os.close(answers_in)
        self.waiting = b""
        self.number = 0
        self.session = None
        self.events = []
        page = next(target for target in self.call("Target.getTargets")["targetInfos"] if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self.call(f"{domain}.enable")

    def receive(self):
        while b"\0" not in self.waiting:
            some = os.read(self.answers, 1 << 16)
            if not some:
                raise EOFError("the browser is gone")
            self.waiting += some
        message, self.waiting = self.waiting.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **values):
        self.number += 1
        message = {"id": self.number, "method": method, "params": values}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.command, data):]
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def run(self, script):
        """The value of a JavaScript expression, awaited if it is a promise."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description", "failed"))
        return answer["result"].get("value")

    def until(self, condition, seconds=30):
        """Waits for a JavaScript expression to be true."""
        deadline = time.monotonic() + seconds
        while not self.run(f"Boolean({condition})"):
            if time.monotonic() > deadline:
                raise TimeoutError(f"never true: {condition}")
            time.sleep(0.02)

    def open(self, address):
        self.events.clear()
        self.call("Page.navigate", url=address)
        self.until("document.readyState === 'complete'")

    def mouse(self, kind, x, y, **values):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **values)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    def key(self, key, modifiers=0):
        text = key if len(key) == 1 else ""
        code = {"Tab": 9, "Enter": 13, "Escape": 27, "Home": 36}.get(key, 0)
        values = {"key": key, "modifiers": modifiers, "windowsVirtualKeyCode": code}
        if key == "Enter":
            text = "\r"
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **values)
        self.call("Input.dispatchKeyEvent", type="keyUp", **values)

    def touch(self, kind, points):
        self.call("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(points)])

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def trouble(self):
        """Errors that the page has caused."""
        thrown = [e["params"]["exceptionDetails"] for e in self.events if e["method"] == "Runtime.exceptionThrown"]
        logged = [e["params"]["entry"] for e in self.events if e["method"] == "Log.entryAdded"]
        return thrown + [entry for entry in logged if entry["level"] in ("error", "warning")]

    def requests(self):
        """Addresses that the page has asked for."""
        return [e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"]

    def close(self):
        try:
            self.call("Browser.close")
        except (EOFError, OSError):
            pass
        self.process.wait(20)
        os.close(self.command)
        os.close(self.answers)
        shutil.rmtree(self.folder, ignore_errors=True)
