# SPDX-License-Identifier: MIT
"""A headless Chromium, spoken to over its debugging pipe: pages are laid out and looked at as a reader would.

The DevTools protocol on two file descriptors: JSON texts that end with a zero byte.
"""
import base64
import json
import os
import pathlib
import shutil
import subprocess
import tempfile


def find():
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def starts():
    """Whether the browser runs here at all: some sandboxes let none start."""
    try:
        with Browser():
            return True
    except (RuntimeError, OSError):
        return False


class Browser:
    """`with Browser() as b`: one page.  What it complained about and asked the network for is kept."""

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory()
        to_read, self.to = os.pipe()
        self.from_, from_write = os.pipe()
        arguments = [
            "--headless", "--no-sandbox", "--hide-scrollbars", "--disable-gpu", "--disable-dev-shm-usage",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-extensions", "--remote-debugging-pipe", f"--user-data-dir={self.directory.name}", "about:blank"]
        # The browser reads commands from descriptor 3 and answers on 4, whatever numbers the pipes have.
        shell = f'exec 3<&{to_read} 4>&{from_write} && exec "$@"'
        self.process = subprocess.Popen(
            ["sh", "-c", shell, "sh", find()] + arguments, pass_fds=(to_read, from_write),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=dict(os.environ, HOME=self.directory.name, DBUS_SESSION_BUS_ADDRESS="unix:path=/nonexistent"))
        os.close(to_read)
        os.close(from_write)
        self.rest, self.last, self.session = b"", 0, None
        self.complaints, self.requests, self.loaded = [], [], False
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(domain + ".enable")
        return self

    def __exit__(self, *_):
        os.close(self.to)  # the end of its commands ends the browser
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.from_)
        self.directory.cleanup()

    def message(self):
        while b"\0" not in self.rest:
            part = os.read(self.from_, 1 << 16)
            if not part:
                raise RuntimeError("the browser ended")
            self.rest += part
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def note(self, event):
        kind, what = event.get("method"), event.get("params", {})
        if kind in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            self.complaints.append(json.dumps(what)[:400])
        elif kind == "Network.requestWillBeSent":
            self.requests.append(what["request"]["url"])
        elif kind == "Page.loadEventFired":
            self.loaded = True

    def ask(self, method, **parameters):
        self.last += 1
        command = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.to, json.dumps(command).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.note(answer)

    def open(self, path, width=1200, height=900, dark=False):
        self.complaints, self.requests, self.loaded = [], [], False
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                 mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.ask("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        while not self.loaded:
            self.note(self.message())

    def value(self, expression):
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def screenshot(self, path):
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                        clip={"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1})
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))
