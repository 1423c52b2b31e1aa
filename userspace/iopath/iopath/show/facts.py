# SPDX-License-Identifier: GPL-2.0
"""Facts about a result that a reviewer asks for first: what was measured, and on what."""

from collections.abc import Iterable, Iterator, Sequence
from functools import singledispatch

from iopath.results.result import ExactRecord, ExactResult, HardwareResult, MeasuredKernel, Result

Fact = tuple[str, str]  # a name and a text

# The options of a kernel that a reader asks for first.
_PREEMPT = ("PREEMPT_RT", "PREEMPT_DYNAMIC", "PREEMPT", "PREEMPT_VOLUNTARY", "PREEMPT_LAZY")
_MORE = ("BLK_CGROUP", "BUFFER_HEAD", "HARDENED_USERCOPY", "INIT_ON_ALLOC_DEFAULT_ON")

_COUNTED = "instructions per I/O, user and kernel, by the guest's clock"
_BY_CALL = "instructions by system call, each by the emulator"


def _devices(records: Iterable[ExactRecord]) -> str:
    """What rungs do I/O on, if that is known."""
    found: dict[str, str] = {}  # by rung, or by family where all of it have one
    for record in records:
        if record.on:
            family = f"{record.rung.partition('.')[0]}.*"
            alike = found.get(family, record.on) == record.on
            found[family if alike else record.rung] = record.on
    texts: dict[str, list[str]] = {}
    for key, text in found.items():
        texts.setdefault(text, []).append(key)
    return "; ".join(_told(texts))


def _told(texts: dict[str, list[str]]) -> Iterator[str]:
    """Each device, and of all but the first one whose it is."""
    for number, (text, keys) in enumerate(texts.items()):
        yield f"for {', '.join(keys)}, {text}" if number else text


@singledispatch
def facts(result: Result) -> list[Fact]:
    """What was measured, and on what."""
    raise TypeError(result)


@facts.register
def _(result: ExactResult) -> list[Fact]:
    machine, kernels, first = result.machine, result.kernels, result.kernels[0]
    does_io = any(record.op != "none" for record in result.results)
    unsaid = "unknown" if does_io else "none"  # files of older versions do not say it
    device = result.device or _devices(result.results) or unsaid
    cpus = dict.fromkeys(result.instrument(kernel).machine.cpu for kernel in kernels)
    if not first.zero_fill:
        device += ", zero_fill=0"
    if not first.coherent:
        device += "; biogen with coherent=0"
    return [
        ("counted", _COUNTED if result.device is None else _BY_CALL),
        ("device", device),
        (
            "guest",
            f"QEMU {result.qemu.version} (TCG, -icount), CPU {', '.join(cpus)}"
            f" ({first.cpu_model}), 1 CPU, {machine.memory_mib} MiB",
        ),
        ("command line", machine.cmdline or "(nothing added)"),
        ("made by", result.program),
        *((kernel.name, _exact_kernel(kernel)) for kernel in result.kernels),
    ]


def _exact_kernel(kernel: MeasuredKernel) -> str:
    """A kernel's release, origin, compiler and most important options."""
    config = kernel.config
    preempt = [name for name in _PREEMPT if config.get(name) == "y"]
    options = [preempt[0] if preempt else "PREEMPT_NONE", f"HZ={config.get('HZ', '?')}"]
    options += [name for name in _MORE if config.get(name) == "y"]
    digest = (kernel.digests or {}).get("config", "")
    return (
        f"{kernel.release} ({kernel.origin}), {kernel.compiler}; {', '.join(options)};"
        f" config {digest[:8]}"
    )


@facts.register
def _(result: HardwareResult) -> list[Fact]:
    machine = result.machine
    state = [f"governor {machine.governor}", f"boost {machine.boost}"]
    if machine.smt_siblings:
        state.append(f"core shared with CPU {', '.join(map(str, machine.smt_siblings))}")
    if machine.isolated:
        state.append(f"isolated: {machine.isolated}")
    state.append(f"load {machine.load:.2f}")
    mitigated = [
        f"{name}: {text}"
        for name, text in machine.mitigations.items()
        if not text.startswith(("Not affected", "Unknown"))
    ]
    running = all(name.startswith("host") for name in result.names)
    place = "on the running machine" if running else "in guests on the processor itself (KVM)"
    return [
        ("measured", f"time per I/O and what the processor counts, {place}"),
        ("machine", f"{machine.cpu_model}, CPU {machine.cpu} of {machine.cpus}"),
        ("state", "; ".join(state)),
        ("mitigations", "; ".join(mitigated) or "none"),
        ("made by", result.program),
        *((kernel.name, f"{kernel.release}, {kernel.compiler}") for kernel in result.kernels),
    ]


# The facts of each kernel in a table: the title of a row, and the field.
_KERNEL = (
    ("release", "release"),
    ("package version", "version"),
    ("origin", "origin"),
    ("compiler", "compiler"),
    ("command line", "cmdline"),
    ("clock source", "clocksource"),
)


def of_kernels(kernels: Sequence[MeasuredKernel]) -> list[tuple[str, list[str]]]:
    """The facts of each kernel, for the columns of a table."""
    return [
        (title, [getattr(kernel, field) or "" for kernel in kernels])
        for title, field in _KERNEL
        if getattr(kernels[0], field) is not None
    ]
