"""Headless Chromium for tests of pages, controlled by the DevTools protocol over a pipe, so that no port is opened."""

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from tempfile import TemporaryDirectory
from typing import Any

__all__ = ["Browser", "Page", "browser", "find_chromium"]

SECONDS = 60.0


def find_chromium() -> str | None:
    """Return the path of the program, or None if it is not installed."""
    return next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)


class Browser:
    """Connection to Chromium: commands and answers are JSON that ends with a zero byte; events are kept."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._buffer = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Send a command and return its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select([self._read], [], [], SECONDS)
            assert ready, "the browser does not answer"
            data = os.read(self._read, 1 << 20)
            assert data, "the browser is gone"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

    def open(self, place: Path | str, width: int = 1280, height: int = 900, dark: bool = False, fragment: str = "") -> "Page":
        """Load a file or an address in a window of this size; `fragment` follows the # of the address."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        phone = width < 600
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.call("Emulation.setEmulatedMedia", features=[scheme])
        url = place if isinstance(place, str) else place.resolve().as_uri()
        page.call("Page.navigate", url=url + (f"#{fragment}" if fragment else ""))
        page.wait("document.readyState === 'complete' && document.documentElement.dataset.ready === 'yes'")
        return page


class Page:
    """One page of the browser."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command to this page."""
        return self._browser.call(method, self._session, **params)

    def run(self, script: str) -> Any:
        """Evaluate an expression in the page and return its value; a JavaScript promise is awaited."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until a condition is true, evaluated in every frame the page draws."""
        waiting = f"new Promise((done) => {{ const look = () => ({condition}) ? done(true) : setTimeout(look, 20); look(); }})"
        # A page that is being replaced drops pending promises.
        for _ in range(50):
            answer = self.call("Runtime.evaluate", expression=waiting, returnByValue=True, awaitPromise=True)
            if answer["result"].get("value") is True:
                return
        raise AssertionError(f"never came true: {condition}")

    def console_errors(self, own: str = "file:") -> list[str]:
        """Return console errors and warnings, exceptions, and requests to anything but the page's `own` file or server."""
        self.run("0")
        found = []
        for event in self._browser.events:
            if event.get("sessionId") != self._session:
                continue
            method, params = event["method"], event["params"]
            if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                found.append(f"console: {params['args']}")
            elif method == "Runtime.exceptionThrown":
                found.append(f"exception: {params['exceptionDetails']}")
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(f"log: {params['entry']['text']}")
            elif method == "Network.requestWillBeSent" and not params["request"]["url"].startswith((own, "data:", "blob:")):
                found.append(f"network: {params['request']['url']}")
        return found

    def screenshot(self) -> bytes:
        """Return the whole page, also what is below the window, as a PNG file."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"])

    def pdf(self) -> bytes:
        """Return the page as a PDF file."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])


@contextmanager
def browser() -> Iterator[Browser]:
    """Start a browser and stop it afterwards; raises AssertionError if the program is not installed."""
    program = find_chromium()
    assert program is not None, "no chromium"
    # The program reads commands from descriptor 3 and writes answers to 4.
    command_read, command_write = os.pipe()
    answer_read, answer_write = os.pipe()
    # Children of the program may still write to its folder after it has ended.
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        redirect = f'exec "$0" "$@" 3<&{command_read} 4>&{answer_write}'
        process = subprocess.Popen(
            ["bash", "-c", redirect, program, *options, "--remote-debugging-pipe", f"--user-data-dir={profile}"],
            pass_fds=(command_read, answer_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(command_read)
        os.close(answer_write)
        try:
            yield Browser(command_write, answer_read)
        finally:
            os.close(command_write)
            os.close(answer_read)
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
