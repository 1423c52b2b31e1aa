# SPDX-License-Identifier: GPL-2.0
"""Run other programs, and end them with this one.

Each child leads a session of its own, so that Ctrl-C reaches iopath alone, which then ends the
children: `stop_all` from the main thread, and the kernel (PR_SET_PDEATHSIG) if iopath is killed.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from iopath.base.errors import IopathError, Stopped

_lock = threading.Lock()
_running: set[subprocess.Popen] = set()
_stopping = threading.Event()


def need(program: str, package: str) -> str:
    """The path of *program*; tells which Debian package has it if it is missing."""
    path = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
    if path is None:
        raise IopathError(f"{program} is not installed: apt-get install {package}")
    return path


def stop_all() -> None:
    """End all running children, and start no more."""
    with _lock:
        _stopping.set()
        children = list(_running)
    for child in children:
        _kill(child)


def check_stopped(after: float = 0.0) -> None:
    """Raise Stopped after stop_all, or else return after *after* seconds: for long work between
    two programs, and for waiting."""
    if _stopping.wait(after):
        raise Stopped


def _kill(child: subprocess.Popen) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


# The parent may have died before the signal was asked for.
_IF_PARENT_LIVES = 'test $PPID = "$1" && shift && exec "$@"'


def _bound_to_us(command: Sequence[str | Path]) -> list[str]:
    """*command* as one that the kernel kills when this process dies."""
    words = [need("setpriv", "util-linux"), "--pdeathsig", "KILL"]
    return [*words, "sh", "-c", _IF_PARENT_LIVES, "sh", str(os.getpid()), *map(str, command)]


@contextlib.contextmanager
def start(
    command: Sequence[str | Path],
    *,
    output: Path,
    stdout: IO | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    keep: Sequence[int] = (),
) -> Iterator[subprocess.Popen]:
    """Start *command* with standard error in the file *output*, standard output in the same or in
    *stdout*, and the file descriptors *keep* open; it is killed at the end of the block.

    Raises Stopped if stop_all was called before or during the block.
    """
    argv = _bound_to_us(command)
    with output.open("ab") as log:
        with _lock:
            if _stopping.is_set():
                raise Stopped
            child = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=stdout or log,
                stderr=log,
                cwd=cwd,
                env=None if env is None else {**os.environ, **env},
                pass_fds=keep,
                start_new_session=True,
            )
            _running.add(child)
        try:
            yield child
        finally:
            _kill(child)
            child.wait()
            with _lock:
                _running.discard(child)
    if _stopping.is_set():
        raise Stopped


def run(
    command: Sequence[str | Path],
    *,
    output: Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
    poll: Callable[[], None] | None = None,
) -> int:
    """Run *command* with standard output and error in the file *output*; its exit status.

    *poll* is called four times a second meanwhile. Raises subprocess.TimeoutExpired after *timeout*
    seconds and Stopped after stop_all; the child is dead by then.
    """
    with start(command, output=output, cwd=cwd, env=env) as child:
        waited = 0.0
        while True:
            try:
                return child.wait(0.25)
            except subprocess.TimeoutExpired:
                waited += 0.25
                if poll:
                    poll()
                if timeout is not None and waited >= timeout:
                    raise


def last_line(path: Path, default: str = "no output") -> str:
    """The last line that a program wrote into *path*."""
    lines = [line.strip() for line in path.read_text(errors="replace").splitlines()]
    return next((line for line in reversed(lines) if line), default)
