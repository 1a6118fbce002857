"""Headless Chromium, driven through its debugging pipe: one start for many pages, widths, colour schemes and media."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from waiting import wait_until

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE_S = 60.0
"""Greatest time of an answer on a busy machine."""
_KEYS = {"Tab": 9, "Enter": 13, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
"""Supported keys, with their Windows key codes."""
_TEXTS = {"Enter": "\r", " ": " "}
"""Text of keys that produce a character."""


class Browser:
    """Browser tab.

    Scripts that are evaluated here are the debugger's: the page's content security policy does not apply to them.
    """

    def __init__(self, to: int, answers: int) -> None:
        self._to, self._answers = to, answers
        self._read = b""
        self._count = 0
        self._session: str | None = None
        target = self.do("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.do("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.do("Page.enable")

    def do(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the DevTools protocol and return its result."""
        self._count += 1
        call: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self._session is not None:
            call["sessionId"] = self._session
        os.write(self._to, json.dumps(call).encode() + b"\0")
        while (text := self._message()).get("id") != self._count:
            pass
        assert "error" not in text, (method, text["error"])
        result: dict[str, Any] = text["result"]
        return result

    def open(self, url: str, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Load a page and wait until its scripts have run."""
        self.look(width=width, height=height, dark=dark)
        self.do("Page.navigate", url=url)
        while self._message().get("method") != "Page.loadEventFired":
            pass

    def look(self, *, width: int = 1280, height: int = 900, dark: bool = False, media: str = "") -> None:
        """Set the window size, colour scheme and medium, and wait until the page is drawn."""
        self.do(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.do("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.settle()

    def settle(self) -> None:
        """Wait until all changes are drawn."""
        self.tell("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def tell(self, expression: str) -> Any:
        """Return the value of a JavaScript expression; wait for a promise."""
        text = self.do("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in text, text["exceptionDetails"]
        return text["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until an expression is true."""
        wait_until(lambda: self.tell(expression), f"the page fulfils {expression}", PATIENCE_S)

    def press(self, key: str) -> None:
        """Press a key, by its name in JavaScript."""
        named = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": _KEYS[key]}
        typed = {"text": _TEXTS[key]} if key in _TEXTS else {}
        self.do("Input.dispatchKeyEvent", type="keyDown" if typed else "rawKeyDown", **named, **typed)
        self.do("Input.dispatchKeyEvent", type="keyUp", **named)

    def across(self) -> float:
        """Return the width of the page including overflowing parts, in pixels: on a phone they widen its window."""
        width: float = self.tell("Math.max(document.scrollingElement.scrollWidth, document.body.scrollWidth)")
        return width

    def print(self) -> bytes:
        """Return the page as PDF, on A4, as a print dialog would."""
        made = self.do("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, printBackground=False)
        return b64decode(made["data"])

    def _message(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE_S
        while b"\0" not in self._read:
            ready, _, _ = select.select([self._answers], [], [], max(until - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            more = os.read(self._answers, 1 << 20)
            assert more, "the browser has ended"
            self._read += more
        one, _, self._read = self._read.partition(b"\0")
        message: dict[str, Any] = json.loads(one)
        return message


@contextmanager
def open_browser(profile: Path) -> Iterator[Browser]:
    """Yield a Chromium with a fresh profile; skip the test if this machine has none."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    # Files that remain if the browser is killed. The short path leaves room for the browser's socket.
    temporary = tempfile.TemporaryDirectory(prefix="b", ignore_cleanup_errors=True)
    (its_input, to), (answers, its_output) = os.pipe(), os.pipe()
    # The browser reads descriptor 3 and writes descriptor 4; not every shell can redirect descriptors of two digits.
    words = (
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
        *("--disable-background-networking", "--disable-component-update", f"--user-data-dir={profile}"),
        "--remote-debugging-pipe",
    )
    started = subprocess.Popen(
        ["bash", "-c", f'exec 3<&{its_input} 4>&{its_output} "$@"', "bash", *words],
        pass_fds=(its_input, its_output),
        env={**os.environ, "TMPDIR": temporary.name},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(its_input)
    os.close(its_output)
    try:
        tab = Browser(to, answers)
        yield tab
        tab._session = None
        tab.do("Browser.close")
        started.wait(PATIENCE_S)
    finally:
        started.kill()
        started.wait()
        os.close(to)
        os.close(answers)
        temporary.cleanup()
