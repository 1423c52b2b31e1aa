# SPDX-License-Identifier: GPL-2.0
"""Chromium without a window, driven by its DevTools protocol through two pipes."""

import base64
import contextlib
import fcntl
import itertools
import json
import os
import re
import select
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import axe_core_python

from iopath.base.process import need

_TIMEOUT = 600  # seconds, a guard against hanging

# Elements that stick out of the window, or that scroll sideways.
_TOO_WIDE = """(() => [...document.querySelectorAll("body, body *")].filter((part) =>
    part.checkVisibility() && !part.closest("svg, select, .frame, legend")
    && (part.getBoundingClientRect().right > document.documentElement.clientWidth + 1
        || (part.scrollWidth > part.clientWidth + 1
            && getComputedStyle(part).overflowX !== "visible")))
    .map((part) => part.outerHTML.slice(0, 100)).slice(0, 5))()"""


class Navigated(Exception):
    """The page was left while an expression was evaluated in it."""


def _pipe() -> tuple[int, int]:
    """A pipe whose descriptors are not among the browser's own."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return high[0], high[1]


class Browser:
    """One page in a browser. What the page reports as errors is collected in *errors*."""

    def __init__(self, folder: Path) -> None:
        self.errors: list[str] = []
        self._folder = folder
        self._numbers = itertools.count(1)
        self._unread = b""
        # The browser reads its descriptor 3 and writes to its descriptor 4.
        commands, self._to = _pipe()
        self._from, answers = _pipe()
        self._process = subprocess.Popen(
            [
                "bash", "-c", f'exec "$0" "$@" 3<&{commands} 4>&{answers}',
                need("chromium", "chromium"),
                "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--disable-sync",
                f"--user-data-dir={folder / 'profile'}", "--remote-debugging-pipe", "about:blank",
            ],
            pass_fds=(commands, answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(commands)
        os.close(answers)
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> "Browser":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.wait()
        os.close(self._to)
        os.close(self._from)

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Call a method of the protocol, and handle events that arrive meanwhile."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                if re.search(
                    r"navigated|context|Promise was collected", str(answer.get("error", ""))
                ):
                    raise Navigated(answer["error"])
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self._event(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._from], [], [], _TIMEOUT)
            assert ready, "the browser does not answer"
            data = os.read(self._from, 1 << 20)
            assert data, "the browser ended"
            self._unread += data
        text, _, self._unread = self._unread.partition(b"\0")
        return json.loads(text)

    def _event(self, event: dict[str, Any]) -> None:
        found = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                details = found["exceptionDetails"]
                self.errors.append(details.get("exception", {}).get("description", str(details)))
            case "Runtime.consoleAPICalled" | "Log.entryAdded":
                self.errors.append(json.dumps(found))

    def open(self, text: str, address: str = "") -> None:
        """Show a page at an address within it."""
        path = self._folder / "page.html"
        path.write_text(text)
        self.visit(path, address)

    def visit(self, path: Path, address: str = "") -> None:
        """Show a file at an address within it."""
        # The same file with another fragment would not be loaded again.
        self.call("Page.navigate", url="about:blank")
        self.wait("location.href === 'about:blank'")
        self.call("Page.navigate", url=f"{path.absolute().as_uri()}#{address}")
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def window(self, width: int, height: int = 900) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def media(self, kind: str = "", scheme: str = "light") -> None:
        """Show the page as printed ("print") or as in the dark."""
        self.call(
            "Emulation.setEmulatedMedia",
            media=kind,
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    def run(self, script: str) -> Any:  # noqa: ANN401
        """The value of an expression in the page; a promise is awaited."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until an expression is true, also in the next page."""
        until = time.monotonic() + _TIMEOUT
        while not self._is(condition):
            assert time.monotonic() < until, f"it did not come true that {condition}"
            time.sleep(0.01)

    def _is(self, condition: str) -> bool:
        with contextlib.suppress(Navigated):
            return bool(self.run(condition))
        return False

    def press(self, key: str) -> None:
        """Press a key. A letter is typed."""
        text = key if len(key) == 1 else {"Enter": "\r"}.get(key, "")
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowDown": 40}
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key,
                text=text if kind == "keyDown" else "",
                windowsVirtualKeyCode=codes.get(key, 0),
            )  # fmt: skip
        self.settle()

    def settle(self) -> None:
        """Wait until events of an input are handled, and what they changed is laid out, or the page
        was left."""
        with contextlib.suppress(Navigated):
            self.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))")

    def screenshot(self, path: Path) -> None:
        """A picture of the whole page."""
        taken = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(taken["data"]))

    def open_details(self) -> None:
        self.run("document.querySelectorAll('details').forEach((part) => { part.open = true; })")

    def too_wide(self) -> list[str]:
        """Elements that stick out of the window, or that scroll sideways."""
        return self.run(_TOO_WIDE)

    def inaccessible(self) -> list[str]:
        """What axe finds wrong with what the page shows, contrast included."""
        self.run((Path(axe_core_python.__file__).parent / "axe.min.js").read_text() + "; 0")
        return self.run(
            "axe.run({resultTypes: ['violations']}).then(({violations}) =>"
            " violations.flatMap(({id, nodes}) => nodes.map(({html, failureSummary}) =>"
            " `${id}: ${html} ${failureSummary}`)))"
        )
