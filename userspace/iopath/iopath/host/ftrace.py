# SPDX-License-Identifier: GPL-2.0
"""The path of one I/O as a call tree: ftrace's function_graph of one system call of a loop."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from iopath.base import process, temporary
from iopath.base.arch import this_machine
from iopath.base.errors import IopathError, UsageError
from iopath.host import loop
from iopath.rungs.runs import Run

_TRACEFS = Path("/sys/kernel/tracing")
_IOS = 3  # the last one is shown, whose code and data are in the caches

# The system calls that the loop's engines make, to read and to write.
_CALLS = {
    "syscall": ("getppid", "getppid"),
    "sync": ("pread64", "pwrite64"),
    "buffered": ("pread64", "pwrite64"),
    "vsync": ("preadv2", "pwritev2"),
    "libaio": ("io_submit", "io_submit"),
    "io_uring": ("io_uring_enter", "io_uring_enter"),
    "splice": ("splice", "splice"),
}


def trace(run: Run, cpu: int) -> list[str]:
    """The lines of the call tree of one I/O, or one batch."""
    engine = next(o for o in run.rung.options if o.startswith("--ioengine=")).split("=")[1]
    if engine not in _CALLS:
        raise UsageError(
            f"{run.rung.name}: it has no system call for each I/O, so there is nothing to trace"
        )
    call = f"{this_machine().syscall_prefix}{_CALLS[engine][run.op == 'write']}"
    words = loop.command(run, cpu, ios=_IOS * run.rung.batch, rounds=1)
    with _tracing(call) as start, temporary.folder() as folder:
        log = folder / "log"
        # The shell becomes ioloop, which keeps its process ID.
        shell = ["sh", "-c", 'echo $$ >"$1" && echo 1 >"$2" && shift 2 && exec "$@"', "sh"]
        status = process.run([*shell, *start, *words, f"--output={folder}/report"], output=log)
        if status:
            raise IopathError(f"{run.rung.name} {run.op}: {process.last_line(log)}")
        _write("tracing_on", "0")
        return last_call((_TRACEFS / "trace").read_text(errors="replace").splitlines(), call)


def last_call(lines: list[str], function: str) -> list[str]:
    """The last complete call of *function* in the output of function_graph: the lines without the
    columns for CPU and interrupts."""
    found: list[str] = []
    current: list[str] = []
    for line in lines:
        match = re.match(r"^\s*\d+\)\s*(.*?)\s*\|(  .*)$", line)
        if not match:
            continue
        duration, text = match.groups()
        if re.match(rf"  {function}\(\) {{", text):
            current = []
        elif not current:
            continue
        current.append(f"{duration:>12} |{text}")
        if re.match(r"  }", text):
            # Between rounds the loop reads the number of interrupts.
            if not any(" proc_reg_read" in part for part in current):
                found = current
            current = []
    if not found:
        raise IopathError(f"ftrace saw no whole call of {function}: is its buffer too small?")
    return found


def _write(name: str, text: str) -> None:
    path = _TRACEFS / name
    try:
        path.write_text(text)
    except OSError as error:
        raise IopathError(f"cannot write {text!r} to {path}: {error.strerror}") from error


def _read(name: str) -> str:
    path = _TRACEFS / name
    try:
        return path.read_text()
    except OSError as error:
        raise IopathError(f"cannot read {path}: {error.strerror}") from error


@contextlib.contextmanager
def _tracing(function: str) -> Iterator[list[str]]:
    """Set ftrace up for calls of *function*, and restore it afterwards. Yields the files that take
    the process ID and the start."""
    if not (_TRACEFS / "current_tracer").exists():
        raise IopathError(
            f"{_TRACEFS} does not exist: run as root, and mount -t tracefs tracefs {_TRACEFS}"
        )
    tracers = (_TRACEFS / "available_tracers").read_text().split()
    if "function_graph" not in tracers:
        raise IopathError("this kernel has no function_graph tracer: CONFIG_FUNCTION_GRAPH_TRACER")
    using = (_TRACEFS / "current_tracer").read_text().strip()
    if using != "nop":
        raise IopathError(f"ftrace is in use: {using} is the current tracer")
    before = {name: _read(name) for name in _CHANGED}
    try:
        _write("tracing_on", "0")
        _write("options/function-fork", "1")  # ioloop's job is a process of its own
        _write("options/funcgraph-irqs", "0")
        _write("set_graph_function", function)
        _write("current_tracer", "function_graph")
        yield [str(_TRACEFS / "set_ftrace_pid"), str(_TRACEFS / "tracing_on")]
    finally:
        _restore(before)


# The files that are changed, in the order they are restored in. Tracing is off meanwhile.
_CHANGED = (
    "current_tracer", "set_graph_function", "set_ftrace_pid", "options/function-fork",
    "options/funcgraph-irqs", "tracing_on",
)  # fmt: skip


def _restore(before: dict[str, str]) -> None:
    """Restore all files, even if some fail. Raises IopathError that names those."""
    # An empty list reads as a comment or as "no pid".
    texts = {
        name: "" if text.startswith(("#", "no pid")) else text.strip()
        for name, text in before.items()
    }
    failures = []
    for name, text in (("tracing_on", "0"), ("trace", ""), *texts.items()):
        try:
            _write(name, text)
        except IopathError as error:
            failures.append(str(error))
    if failures:
        raise IopathError(f"cannot restore ftrace: {'; '.join(failures)}")
