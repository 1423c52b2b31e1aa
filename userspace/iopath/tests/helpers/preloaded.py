# SPDX-License-Identifier: GPL-2.0
"""Run the command iopath in processes that are forked from one that has loaded it. Loading it takes
longer than most of the commands that tests run."""

import atexit
import functools
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

_MOST = 1 << 17  # bytes of a message

# What the interpreter or the C library reads when a program starts.
_AT_START = ("PYTHON", "LANG", "LC_", "TZ")


def serves(env: Mapping[str, str]) -> bool:
    """Whether a forked process behaves in *env* as one that is started does."""
    changed = {name for name, _ in set(env.items()) ^ set(os.environ.items())}
    return not any(name.startswith(_AT_START) for name in changed)


def run(words: Sequence[str], env: Mapping[str, str], timeout: float) -> tuple[int, str, str]:
    """Run iopath with *words*: its exit status, its output and its messages. Raises
    TimeoutExpired."""
    job = {"words": words, "env": dict(env), "folder": str(Path.cwd())}
    pipes = [os.pipe() for _ in range(2)]
    ends = [write for _, write in pipes]
    socket.send_fds(_server(), [json.dumps(job).encode()], ends)
    for end in ends:
        os.close(end)
    child = int(_server().recv(_MOST))
    with ThreadPoolExecutor() as readers:
        texts = [readers.submit(Path(f"/dev/fd/{read}").read_text) for read, _ in pipes]
        _, late = wait(texts, timeout)
        if late:
            os.kill(child, signal.SIGKILL)
    for read, _ in pipes:
        os.close(read)
    status = int(_server().recv(_MOST))
    if late:
        raise subprocess.TimeoutExpired(["iopath", *words], timeout)
    out, err = (text.result() for text in texts)
    return status, out, err


@functools.cache
def _server() -> socket.socket:
    """A connection to the process that has loaded iopath. It ends with this one."""
    own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with other:
        process = subprocess.Popen([sys.executable, __file__], stdin=other)
    atexit.register(process.wait)  # then its time counts as this one's
    atexit.register(own.close)  # called first
    return own


def _load() -> None:
    """Load what most commands use."""
    for name in ("iopath.cli.main", "iopath.measure.session", "cattrs.errors", "rich.progress"):
        importlib.import_module(name)
    commands = importlib.import_module("iopath.commands")
    for module in pkgutil.iter_modules(commands.__path__, "iopath.commands."):
        importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


def _become(job: Mapping, ends: Sequence[int]) -> None:
    """Be the process that runs a job, whose output and messages go to the *ends* of pipes."""
    os.environ.clear()
    os.environ.update(job["env"])
    os.chdir(job["folder"])
    sys.argv = ["iopath", *job["words"]]
    for number, file in enumerate([os.open(os.devnull, os.O_RDONLY), *ends]):
        os.dup2(file, number)
        os.close(file)
    # What the interpreter does when it starts: it looks whether these are files.
    sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace")  # noqa: SIM115


def _serve() -> bool:
    """Fork a process for each job that comes by the socket, the standard input. Returns whether
    this is such a process."""
    jobs = socket.socket(fileno=os.dup(0))
    while True:
        text, ends, _, _ = socket.recv_fds(jobs, _MOST, 2)
        if not text:
            return False
        child = os.fork()
        if not child:
            jobs.close()
            _become(json.loads(text), ends)
            return True
        for end in ends:
            os.close(end)
        jobs.send(str(child).encode())
        _, status = os.waitpid(child, 0)
        jobs.send(str(os.waitstatus_to_exitcode(status)).encode())


if __name__ == "__main__":
    _load()
    if _serve():
        from iopath.__main__ import main

        sys.exit(main())
