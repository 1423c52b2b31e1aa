# SPDX-License-Identifier: GPL-2.0
"""The running machine and its kernel: what could explain a difference in time."""

import gzip
import os
import re
import shutil
import subprocess
from pathlib import Path

from iopath.base.arch import Arch, named, this_machine
from iopath.base.errors import UsageError
from iopath.results import kernelinfo
from iopath.results.result import HostMachine, MeasuredKernel

NAME = "host"
_ROOT = Path("/")
_CLOCKSOURCE = "sys/devices/system/clocksource/clocksource0/current_clocksource"


def _read(path: str | Path, default: str = "") -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return default


def choose_cpu(wanted: int | None) -> int:
    """The CPU to measure on: *wanted*, or else the last isolated CPU, or else the last CPU."""
    allowed = sorted(os.sched_getaffinity(0))
    if wanted is None:
        isolated = [cpu for cpu in _cpu_list(_read("/sys/devices/system/cpu/isolated"))]
        return max([cpu for cpu in isolated if cpu in allowed] or allowed)
    if wanted not in allowed:
        raise UsageError(
            f"--on-cpu {wanted}: iopath may not run there: must be one of"
            f" {', '.join(map(str, allowed))}"
        )
    return wanted


def _arch(root: Path) -> Arch:
    return this_machine() if root == _ROOT else named(_read(root / "arch"))


def _allowed(root: Path) -> list[int]:
    """The CPUs that programs may run on."""
    found = re.search(
        r"^Cpus_allowed_list:\s*(\S+)", _read(root / "proc/self/status"), re.MULTILINE
    )
    return _cpu_list(found.group(1)) if found else []


def _cpu_list(text: str) -> list[int]:
    cpus: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        cpus += range(int(first), int(last or first) + 1)
    return cpus


def survey(cpu: int, root: Path = _ROOT) -> HostMachine:
    """The properties of a machine that affect time, with warnings of what makes it vary. *root* has
    a copy of that machine's files; by default it is this machine."""
    system = root / "sys/devices/system"
    base = system / f"cpu/cpu{cpu}"
    info = of_cpu(_read(root / "proc/cpuinfo"), cpu)
    microcode = re.search(r"^microcode\s*:\s*(.*)$", info, re.MULTILINE)
    governor = _read(base / "cpufreq/scaling_governor", "none")
    boost = _boost(system)
    siblings = [n for n in _cpu_list(_read(base / "topology/thread_siblings_list")) if n != cpu]
    vulnerabilities = sorted((system / "cpu/vulnerabilities").glob("*"))
    guest = _is_guest(info, root)
    load = float(_read(root / "proc/loadavg", "0").split()[0])
    warnings = []
    if governor not in ("none", "performance"):
        warnings.append(
            f"CPU {cpu} changes its frequency (governor {governor}):"
            " cpupower frequency-set -g performance"
        )
    if boost == "on":
        warnings.append("boost is on: the frequency depends on heat and on the other cores")
    if siblings:
        others = ", ".join(map(str, siblings))
        warnings.append(f"CPU {cpu} shares its core with CPU {others}: keep that idle or offline")
    if load > 0.5:
        warnings.append(f"the machine is not idle: its load is {load:.2f}")
    if guest:
        warnings.append("this machine is a guest: others may take its CPU time")
    clocksource = _read(root / _CLOCKSOURCE)
    if clocksource != (fast := _arch(root).clock):
        warnings.append(f"the clock is {clocksource or 'unknown'}, not {fast}: reading it is slow")
    return HostMachine(
        cpu=cpu,
        cpu_model=kernelinfo.cpu_model(info),
        microcode=microcode.group(1) if microcode else "",
        cpus=len(_allowed(root)),
        governor=governor,
        boost=boost,
        smt_siblings=siblings,
        isolated=_read(system / "cpu/isolated"),
        guest=guest,
        load=load,
        mitigations={path.name: _read(path) for path in vulnerabilities},
        warnings=warnings,
    )


def of_cpu(cpuinfo: str, cpu: int) -> str:
    """What /proc/cpuinfo says of one CPU: those of an arm64 machine may be of several models."""
    parts = re.split(r"\n\n+", cpuinfo)
    own = re.compile(rf"processor\s*: {cpu}$", re.MULTILINE)
    return next((part for part in parts if own.match(part)), cpuinfo)


def _is_guest(info: str, root: Path) -> bool:
    """Whether the machine is a guest. x86-64 CPUs say so; of others, systemd knows, on the machine
    itself."""
    flags = re.search(r"^flags\s*: (.*)$", info, re.MULTILINE)
    if flags:
        return "hypervisor" in flags.group(1).split()
    detect = shutil.which("systemd-detect-virt") if root == _ROOT else None
    return bool(detect) and not subprocess.run([detect, "--quiet", "--vm"], check=False).returncode


def _boost(system: Path) -> str:
    turbo = _read(system / "cpu/intel_pstate/no_turbo")
    if turbo:
        return "off" if turbo == "1" else "on"
    boost = _read(system / "cpu/cpufreq/boost")
    return {"1": "on", "0": "off"}.get(boost, "unknown")


def _config(release: str, root: Path) -> str:
    for place in (root / f"boot/config-{release}", root / f"lib/modules/{release}/config"):
        if os.access(place, os.R_OK):
            return place.read_text()
    try:
        return gzip.decompress((root / "proc/config.gz").read_bytes()).decode()
    except OSError:
        return ""


def describe(root: Path = _ROOT) -> MeasuredKernel:
    """The running kernel and its modules, as results describe a kernel. *root* has a copy of that
    machine's files; by default it is this machine."""
    release = _read(root / "proc/sys/kernel/osrelease")
    banner = _read(root / "proc/version")
    folders = {name: root / "sys/module" / name for name in ("blknull", "biogen")}
    modules = {
        name: {
            "srcversion": _read(folder / "srcversion"),
            "parameters": " ".join(
                f"{path.name}={_read(path)}" for path in sorted((folder / "parameters").glob("*"))
            ),
        }
        for name, folder in folders.items()
        if folder.is_dir()
    }
    return MeasuredKernel(
        name=NAME,
        release=release,
        arch=_arch(root).name,
        banner=banner,
        compiler=kernelinfo.compiler(banner),
        cmdline=_read(root / "proc/cmdline"),
        clocksource=_read(root / _CLOCKSOURCE),
        config=kernelinfo.options(_config(release, root)),
        modules=modules,
    )
