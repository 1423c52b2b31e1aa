# SPDX-License-Identifier: GPL-2.0
"""Run a plan in a sealed guest, and fetch what it recorded.

The guest is QEMU's software emulation of one CPU with -icount: its clock advances one nanosecond
per instruction, so a duration measured inside is a number of instructions. It sees nothing of the
host: no network, no disk, a fixed date and a fixed seed for its random numbers.

A guest boots, carries out the commands of its Start and stops. Here its state can be saved, with
what these commands recorded. Then it is given an Image, programs and a plan, and goes on. A guest
that is resumed from a saved state is in the same state as one that has just booted, so both count
the same. Memory is a file. Guests that are resumed map that of the saved state and keep what they
write to themselves, so nothing is read that they do not use. A guest with several CPUs gets a copy.

The plan's commands and the layout of the channel are described in userspace/guest/init.c.
"""

import contextlib
import errno
import gzip
import mmap
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from iopath.base import devices, process, temporary
from iopath.base.cache import out_of_space
from iopath.base.errors import IopathError
from iopath.guest import channel, kvm, unpacked
from iopath.guest.channel import Record
from iopath.guest.machine import Machine, Qemu
from iopath.guest.payload import Image, Start
from iopath.guest.qmp import Ended, Qmp, QmpError

STATE = "state"  # the name of a saved state in its folder, without memory
RAM = "ram"  # beside it, its memory
_PACKED = "ram.zst"  # or its memory, compressed, if the guest has several CPUs
_CONSOLE = "console.log"  # what its console said
_STARTED = "started.gz"  # and what the commands of its start recorded
_CLOCK = struct.Struct(">qq")  # of a saved state, in ns and instructions
_IN_FILE = [{"capability": "x-ignore-shared", "state": True}]  # memory is not in the state

NOT_ENDED = "the guest did not end within"  # what GuestError says of a guest that hangs

_TROUBLE = re.compile(
    r"Kernel panic[^\n]*|(?:BUG|Oops|WARNING): [^\n]*|Out of memory[^\n]*|^init: [^\n]*",
    re.MULTILINE,
)


# Gets the records, the plugin's counts and the file of the memory before the guest is removed.
Inspect = Callable[[list[Record], bytes, Path], None]
# Gets the records of the start before the guest goes on.
Started = Callable[[list[Record]], None]


class GuestError(IopathError):
    """A guest did not carry out its plan; *records* is what it recorded before."""

    def __init__(self, text: str, records: list[Record] | None = None) -> None:
        super().__init__(text)
        self.records = records or []


class StateError(IopathError):
    """A machine's state cannot be saved, or a saved one cannot be loaded."""


def command(
    qemu: Qemu,
    machine: Machine,
    vmlinuz: Path,
    folder: Path,
    ram: Path | None = None,
    *,
    saved: bool = False,
) -> list[str]:
    """The QEMU command line of a machine that boots; *folder* holds the initramfs, the channel, the
    console's log and, unless it is the file *ram*, the memory, which may be *saved*."""
    return [
        *qemu.words,
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        *qemu.sandbox,
        *machine.ram(ram or folder / RAM, saved=saved),
        *machine.processors(),
        *machine.besides(),
        "-cpu", machine.qemu_cpu, "-m", f"{machine.memory}M",
        "-seed", str(machine.seed), "-rtc", "base=2026-01-01T00:00:00,clock=vm",
        "-serial", f"file:{folder}/console.log",
        "-object", f"memory-backend-file,id=channel,size={channel.SIZE},share=on,"
                   f"mem-path={folder}/channel",
        # Only the master of a channel can be saved.
        "-device", "ivshmem-plain,memdev=channel,master=on",
        "-device", "pvpanic-pci", "-action", "panic=pause",
        *machine.slots(),
        "-kernel", str(vmlinuz), "-initrd", f"{folder}/initramfs",
        "-append", f"{machine.arch.cmdline} {machine.parameters}",
    ]  # fmt: skip


def inputs(qemu: Qemu, machine: Machine) -> dict[str, object]:
    """The properties of QEMU and the machine that a guest's figures and its state depend on."""
    words = command(qemu, machine, Path("vmlinuz"), Path("folder"))[len(qemu.words) :]
    return {"qemu": qemu.digest, "command": words, "machine": machine.inputs()}


def memory_file(machine: Machine) -> str:
    """The name of the file beside a saved state that has the memory. Where each guest gets a copy,
    it is compressed: a debug kernel fills all free memory with a pattern."""
    return RAM if machine.cpus == 1 else _PACKED


def save(
    qemu: Qemu,
    machine: Machine,
    start: Start,
    folder: Path,
    log: Path,
    progress: Callable[[int], None] = lambda records: None,
) -> None:
    """Boot, and save the state of the guest that has started to the file STATE in *folder*.

    *log* gets the console; *progress* is called four times a second. Raises StateError if QEMU
    cannot save it."""
    machine = replace(machine, real_time=False, shift=machine.arch.boot_shift)
    with _Guest(qemu, machine, start, log, progress, saved=True) as guest:
        guest.wait_started()
        guest.save(folder / STATE)


def run(
    qemu: Qemu,
    machine: Machine,
    image: Image,
    log: Path,
    progress: Callable[[int], None] = lambda records: None,
    plugin: Path | None = None,
    options: str = "",
    state: Path | None = None,
    inspect: Inspect = lambda records, counts, ram: None,
    started: Started = lambda records: None,
) -> tuple[list[Record], bytes]:
    """Carry out a plan in a guest that boots, or is resumed from *state*: its records, those of its
    start first, and what *plugin* counted, with *options* (Documentation/pathcount.rst).

    *log* gets the console; *progress* is told how many records there are, four times a second.
    *started* is called with the records of the start before the guest goes on, and *inspect* at the
    end with what is returned and the file of the guest's memory. Raises GuestError that names the
    log if the plan was not carried out, and StateError if *state* cannot be loaded.
    """
    with _Guest(qemu, machine, image.start, log, progress, plugin, options, state) as guest:
        guest.wait_started()
        started(guest.records_of_start())
        guest.hand_over(image)
        records, counts = guest.wait_done()
        inspect(records, counts, guest.ram)
        return records, counts


class _Guest:
    """A running machine; a context manager, which ends it."""

    def __init__(
        self,
        qemu: Qemu,
        machine: Machine,
        start: Start,
        log: Path,
        progress: Callable[[int], None],
        plugin: Path | None = None,
        options: str = "",
        state: Path | None = None,
        *,
        saved: bool = False,
    ) -> None:
        self._qemu = qemu
        self._machine = machine
        self._start = start
        self._log = log
        self._progress = progress
        self._plugin = plugin
        self._options = options
        self._state = state
        self._saved = saved

    def __enter__(self) -> "_Guest":
        with contextlib.ExitStack() as stack:
            where = tempfile.gettempdir()
            stack.enter_context(out_of_space(f"cannot run a guest in {where}"))
            self._folder = stack.enter_context(temporary.folder())
            self._memory = self._make_channel(stack)
            stack.callback(self._keep_console)
            self._began = time.monotonic()
            try:
                self._child, self._qmp = self._start_qemu(stack)
                self._qmp.execute("qmp_capabilities")
            except (Ended, TimeoutError):
                raise self._failure() from None
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> bool | None:
        return self._stack.__exit__(*exception)

    @property
    def ram(self) -> Path:
        """The file of its memory, unless the saved one is mapped."""
        return self._folder / RAM

    def _make_channel(self, stack: contextlib.ExitStack) -> mmap.mmap:
        with (self._folder / "channel").open("w+b") as file:
            # Allocate the blocks: on a full disk, writing to a mapped hole kills the process.
            os.posix_fallocate(file.fileno(), 0, channel.SIZE)
            return stack.enter_context(mmap.mmap(file.fileno(), 0))

    def _keep_console(self) -> None:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        said = [self._folder / "console.log"]
        if self._state:
            said.insert(0, self._state.with_name(_CONSOLE))
        with contextlib.suppress(OSError):  # a full disk is reported by what failed first
            self._log.write_bytes(b"".join(path.read_bytes() for path in said if path.exists()))

    def _start_qemu(self, stack: contextlib.ExitStack) -> tuple[subprocess.Popen, Qmp]:
        (self._folder / "initramfs").write_bytes(self._start.initramfs())
        ours, theirs = socket.socketpair()
        stack.enter_context(ours)
        words = command(
            self._qemu, self._machine, self._image(), self._folder, self._mapped(),
            saved=self._saved,
        )  # fmt: skip
        words += ["-chardev", f"socket,id=qmp,fd={theirs.fileno()}"]
        words += ["-mon", "chardev=qmp,mode=control"]
        if self._plugin:
            counts = self._folder / "counts"
            parts = [str(self._plugin), f"out={counts}", self._options]
            words += ["-plugin", ",".join(filter(None, parts))]
        if self._state:
            words += ["-incoming", "defer"]
        with theirs:
            child = stack.enter_context(
                process.start(words, output=self._folder / "qemu.log", keep=[theirs.fileno()])
            )
        if limit := self._machine.cpu_limit:
            resource.prlimit(child.pid, resource.RLIMIT_CPU, (limit, limit + 1))
        return child, Qmp(ours, self._machine.time_limit)

    def _image(self) -> Path:
        """What boots: the kernel in its image, if QEMU starts that."""
        if self._state or not self._machine.exact:
            return self._start.vmlinuz
        kernel = unpacked.kernel(self._start.vmlinuz)
        if kernel is None:
            return self._start.vmlinuz
        path = self._folder / "vmlinux"
        path.write_bytes(kernel)
        return path

    def _mapped(self) -> Path | None:
        """The saved memory, if it can be mapped. The memory of a guest with several CPUs is read at
        the end, so that guest gets a copy."""
        if not self._state:
            return None
        saved = self._state.with_name(memory_file(self._machine))
        if not saved.exists():
            raise StateError(f"{saved.name}: there is no such file")
        if saved.name == RAM and os.access(saved, os.W_OK):
            return saved
        self._copy_ram(saved, self.ram)
        return None

    def _copy_ram(self, source: Path, target: Path) -> None:
        """Copy a file of memory without its pages of zeros, or compress or unpack it."""
        log = self._folder / "copy.log"
        command: list[str | Path] = ["cp", "--sparse=always", source, target]
        if _PACKED in (source.name, target.name):
            how = ["-1"] if target.name == _PACKED else ["-d", "--sparse"]
            command = [process.need("zstd", "zstd"), "-q", *how, source, "-o", target]
        if process.run(command, output=log):
            target.unlink(missing_ok=True)  # its space is needed for the console's log
            raise IopathError(f"cannot write {target}: {process.last_line(log)}")

    def _load(self, state: Path) -> None:
        """Load a saved state into the machine. Its memory is there."""
        channel.HEAD.pack_into(self._memory, 0, channel.MAGIC, 0, channel.STOPPED, 0)
        self._qmp.execute("migrate-set-capabilities", capabilities=_IN_FILE)
        data = memoryview(state.read_bytes())
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                self._qmp.execute("getfd", fdname="state", file=theirs.fileno())
            self._qmp.execute("migrate-incoming", uri="fd:state")
            ours.setblocking(False)
            while self._qmp.execute("query-status")["status"] == "inmigrate":
                with contextlib.suppress(OSError):  # it is full, or QEMU has closed its end
                    data = data[ours.send(data) :]
                    if not data:
                        ours.shutdown(socket.SHUT_WR)
                time.sleep(0.002)

    def wait_started(self) -> None:
        """Wait until the machine has stopped after its start, or is loaded."""
        try:
            if self._state:
                self._load(self._state)
            else:
                self._qmp.wait_for("STOP", self._check)
        except TimeoutError:
            raise self._failure() from None
        except (Ended, OSError, QmpError) as error:
            if self._state:
                complaint = self._complaint() if isinstance(error, Ended) else str(error)
                raise StateError(complaint) from None
            raise self._failure() from None
        _, length, state, _ = channel.HEAD.unpack_from(self._memory)
        if state != channel.STOPPED:
            raise self._failure()
        if self._state:
            try:
                self._started = gzip.decompress(self._state.with_name(_STARTED).read_bytes())
            except (OSError, EOFError, zlib.error) as error:
                raise StateError(f"{_STARTED}: {error}") from None
        else:
            self._started = self._memory[channel.HEAD.size : channel.HEAD.size + length]

    def _check(self) -> None:
        """Raise IopathError if the guest should have printed something by now and has not."""
        self._progress(0)
        if self._machine.accel == "kvm" and self._memory[: len(channel.MAGIC)] != channel.MAGIC:
            kvm.check_started(self._folder / "qemu.log", time.monotonic() - self._began)

    def save(self, path: Path) -> None:
        """Write the state of the stopped machine to *path*, and its memory beside it."""
        path.with_name(_STARTED).write_bytes(gzip.compress(self._started, 1, mtime=0))
        try:
            state = self._fetch_state()
        except (Ended, TimeoutError):
            raise StateError(self._complaint()) from None
        except QmpError as error:
            raise StateError(str(error)) from None
        path.write_bytes(_with_usual_clock(_unmapped(state), self._machine.shift))
        shutil.copyfile(self._folder / "console.log", path.with_name(_CONSOLE))
        self._copy_ram(self.ram, path.with_name(memory_file(self._machine)))

    def _fetch_state(self) -> bytes:
        """The state of the stopped machine, from QEMU, which answers nothing while it writes."""
        self._qmp.execute("migrate-set-capabilities", capabilities=_IN_FILE)
        ours, theirs = socket.socketpair()
        with ours, ours.makefile("rb") as stream, ThreadPoolExecutor(1) as reading:
            try:
                with theirs:
                    self._qmp.execute("getfd", fdname="state", file=theirs.fileno())
                state = reading.submit(stream.read)
                self._qmp.execute("migrate", uri="fd:state")
                while (status := self._qmp.execute("query-migrate"))["status"] != "completed":
                    if status["status"] in ("failed", "cancelled"):
                        raise StateError(status.get("error-desc", "QEMU gives no reason"))
                    time.sleep(0.002)
                return state.result()
            finally:
                with contextlib.suppress(OSError):  # QEMU has closed its end
                    ours.shutdown(socket.SHUT_RDWR)

    def records_of_start(self) -> list[Record]:
        """What the commands of its start recorded."""
        return channel.parse(self._started)

    def hand_over(self, image: Image) -> None:
        """Give the stopped guest its files, its plan and its devices, and let it go on."""
        data = image.payload()
        room = channel.SIZE - channel.HEAD.size
        if len(data) > room:
            raise IopathError(
                f"the guest's files take {len(data) >> 20} MiB: at most {room >> 20} MiB fit"
            )
        self._memory[channel.HEAD.size : channel.HEAD.size + len(data)] = data
        channel.HEAD.pack_into(self._memory, 0, channel.MAGIC, len(data), channel.STOPPED, 0)
        try:
            for name, arguments in devices.commands(image.devices, image.disk):
                self._qmp.execute(name, **arguments)
            self._qmp.execute("cont")
        except QmpError as error:
            raise IopathError(f"QEMU refuses a device of the rung: {error}") from None
        except (Ended, TimeoutError):
            raise self._failure() from None

    def wait_done(self) -> tuple[list[Record], bytes]:
        """Wait for the end of the plan: the records, and what the plugin counted."""
        try:
            self._qmp.wait_end(self._count)
        except TimeoutError:
            raise self._failure() from None
        self._child.wait()
        state, records = channel.read(self._memory)
        if state != channel.DONE:
            raise self._failure()
        records = [*channel.parse(self._started), *records]
        if not self._plugin:
            return records, b""
        counts = self._folder / "counts"
        if not counts.exists():
            raise IopathError(f"pathcount wrote nothing: {self._complaint()}")
        return records, counts.read_bytes()

    def _count(self) -> None:
        _, _, state, records = channel.HEAD.unpack_from(self._memory)
        self._progress(records if state != channel.STOPPED else 0)

    def _complaint(self) -> str:
        return process.last_line(self._folder / "qemu.log", "no complaint")

    def _failure(self) -> GuestError:
        """What went wrong in a guest that did not finish its plan."""
        status = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            # QEMU closes the connection a moment before it ends.
            status = self._child.wait(0.5)
        self._keep_console()
        _, records = channel.read(self._memory)
        complaint = process.last_line(self._folder / "qemu.log", "")
        what = _diagnose(status, complaint, records, self._log, self._machine)
        return GuestError(f"{what} (console: {self._log})", records)


def _unmapped(state: bytes) -> bytes:
    """A saved state with 0 as the address of the channel. QEMU refuses memory that it left out if
    the machine that loads it has it elsewhere, and that one maps the channel only after that."""
    name = b"channel" + channel.SIZE.to_bytes(8, "big")
    before, found, after = state.partition(name)
    if not found or name in after:
        raise StateError("QEMU saves the channel in another way")
    return before + name + bytes(8) + after[8:]


def _with_usual_clock(state: bytes, shift: int) -> bytes:
    """A saved state whose clock goes on from the same time, by 1 ns with each instruction and no
    longer by 2^*shift*. It has the number of executed instructions, and by how much the clock is
    ahead of them."""
    name = b"\x0ctimer/icount" + (1).to_bytes(4, "big")
    before, found, after = state.partition(name)
    if not found or name in after:
        raise StateError("QEMU saves the clock in another way")
    ahead, executed = _CLOCK.unpack_from(after)
    ahead += (executed << shift) - executed
    return before + name + _CLOCK.pack(ahead, executed) + after[_CLOCK.size :]


def _diagnose(
    status: int | None, complaint: str, records: list[Record], log: Path, machine: Machine
) -> str:
    """Why a guest did not finish, on one line."""
    if records and records[-1].name == "error":
        what = records[-1].data.decode(errors="replace")
        if len(records) > 1 and records[-2].status:
            output = records[-2].data.decode(errors="replace")
            what += _first_error(output) or _last_complaint(log)
        return f"the guest failed: {what}"
    if status is None:
        return f"{NOT_ENDED} {machine.time_limit} s"
    if machine.cpu_limit and status == -signal.SIGXCPU:
        return f"{NOT_ENDED} {machine.cpu_limit} s of CPU time"
    if status == -signal.SIGBUS:  # it wrote to a hole of its memory's file
        return f"no space for the guest's memory: {os.strerror(errno.ENOSPC)}"
    if status:
        if machine.accel == "kvm" and not records:
            return f"{kvm.NO_START}: {complaint}"
        return f"QEMU ended with status {status}: {complaint or 'no output'}"
    trouble = _TROUBLE.search(log.read_text(errors="replace"))
    if trouble:
        return f"the guest crashed: {trouble.group(0).strip()}"
    return "the guest ended before its plan did"


def _first_error(output: str) -> str:
    match = re.search(r'"message":\s*"([^"]*)"', output)
    return f": {match.group(1)}" if match else ""


def _last_complaint(log: Path) -> str:
    """ioloop's last message on the console."""
    found = re.findall(r"^ioloop: (.*)$", log.read_text(errors="replace"), re.MULTILINE)
    return f": {found[-1].strip()}" if found else ""
