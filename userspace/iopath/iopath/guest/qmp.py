# SPDX-License-Identifier: GPL-2.0
"""Control a running QEMU by its machine protocol, QMP: JSON, a line each, over a socket.

Only what guests need is implemented. The library qemu.qmp is in no Debian release that iopath is
packaged for.
"""

import contextlib
import json
import socket
import time
from collections.abc import Callable, Iterator

from iopath.base.typed import JsonObject

_POLL = 0.25  # seconds between two calls of a poll function


class Ended(Exception):
    """QEMU has closed its end: it has ended, or is about to."""


class QmpError(Exception):
    """QEMU refused a command."""


class Qmp:
    """The connection *control* to a QEMU that is given *limit* seconds in all."""

    def __init__(self, control: socket.socket, limit: float) -> None:
        self._control = control
        self._ends = time.monotonic() + limit
        self._received = b""
        self._commands = 0
        self._events: list[str] = []

    def execute(self, name: str, *, file: int | None = None, **arguments: object) -> JsonObject:
        """Carry out the command *name*, with the file descriptor *file*: what it returns.

        Raises QmpError, Ended, and TimeoutError after the limit.
        """
        self._commands += 1
        command = {"execute": name, "arguments": arguments, "id": self._commands}
        data = json.dumps(command).encode() + b"\n"
        try:
            socket.send_fds(self._control, [data], [] if file is None else [file])
        except (BrokenPipeError, ConnectionResetError):
            raise Ended from None
        for message in self._messages():
            if message.get("id") == self._commands:
                break
        if "error" in message:
            raise QmpError(f"{name}: {message['error']['desc']}")
        return message["return"]

    def wait_for(self, event: str, poll: Callable[[], None] = lambda: None) -> None:
        """Wait until QEMU sends *event*; *poll* is called four times a second meanwhile."""
        while event not in self._events:
            next(self._messages(poll))
        self._events.remove(event)

    def wait_end(self, poll: Callable[[], None] = lambda: None) -> None:
        """Wait until QEMU ends; *poll* is called four times a second meanwhile."""
        with contextlib.suppress(Ended):
            for _ in self._messages(poll):
                pass

    def _messages(self, poll: Callable[[], None] = lambda: None) -> Iterator[JsonObject]:
        while True:
            while b"\n" not in self._received:
                self._receive(poll)
            line, _, self._received = self._received.partition(b"\n")
            message = json.loads(line)
            if "event" in message:
                self._events.append(message["event"])
            yield message

    def _receive(self, poll: Callable[[], None]) -> None:
        left = self._ends - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._control.settimeout(min(_POLL, left))
        try:
            received = self._control.recv(1 << 16)
        except TimeoutError:
            poll()
            return
        except ConnectionResetError:
            received = b""
        if not received:
            raise Ended
        self._received += received
