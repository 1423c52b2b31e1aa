# SPDX-License-Identifier: GPL-2.0
"""The plan of a guest: its modules, its runs, and the guests that they are divided over."""

import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from iopath.base.devices import is_fixed
from iopath.base.programs import guest_program
from iopath.guest.payload import QUIET, Image, Start
from iopath.kernels import elf, modules
from iopath.kernels.built import Built
from iopath.rungs.rung import Rung
from iopath.rungs.runs import (
    DRAIN_MS,
    FLAT,
    FLAT_ROUNDS,
    NOISE_PASSES,
    TIMED,
    TIMED_ROUNDS,
    Run,
    Settings,
)

_CONFIGFS = "mount configfs /sys/kernel/config"

_CALIBRATION = 20_000  # iterations of a loop of known length, in each of ten rounds
# Runs of a guest. A guest takes two seconds before its first run, and translates all code again.
_GUEST_RUNS = 40


# Files of the guest that describe what it runs on.
CLOCKSOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
FACTS = ("/proc/version", "/proc/cmdline", "/proc/cpuinfo", CLOCKSOURCE)


def missing(options: Collection[str], built: Built) -> list[str]:
    """Those of the kernel options that a kernel lacks."""
    config = built.config.read_text() if options else ""
    return [one for one in options if not re.search(rf"^{one}=[ym]$", config, re.MULTILINE)]


def unmet(rung: Rung, built: Built) -> str:
    """What a rung needs and a kernel lacks; empty if nothing."""
    if rung.waits and not built.arch.tick:
        return f"rungs of devices are not measured on {built.arch.name}"
    if any(map(is_fixed, rung.devices)) and not built.arch.sata:
        return f"QEMU's machine of {built.arch.name} has no SATA controller"
    if rung.since and built.series < rung.since:
        return f"kernels from {'.'.join(map(str, rung.since))} on have it"
    if lacking := missing(rung.needs, built):
        return f"the kernel has no {lacking[0]}"
    for module in rung.modules:
        if not (module.optional or modules.exists(module.name, built)):
            return f"the kernel has no module {module.name}"
    return ""


def groups(runs: Sequence[Run], settings: Settings) -> list[list[Run]]:
    """The runs by guest. Runs share a guest if their rungs have one program, load no module with
    different parameters, and need not be measured alone. Where a guest waits for a device, they
    also begin with the same steps."""
    found: list[tuple[Path | None, dict[str, list[str]], list[Run]]] = []
    for run in runs:
        wanted = {module.name: module.words(settings.overrides) for module in run.rung.modules}
        for program, loaded, members in found:
            together = not (run.rung.alone or members[0].rung.alone)
            if (
                together
                and members[0].rung.devices == run.rung.devices
                and (not run.rung.waits or members[0].rung.begin == run.rung.begin)
                and program == run.rung.program
                and all(loaded.get(name, words) == words for name, words in wanted.items())
            ):
                loaded |= wanted
                members.append(run)
                break
        else:
            found.append((run.rung.program, wanted, [run]))
    return [members for _, _, members in found]


def guests(runs: Sequence[Run], settings: Settings) -> list[list[Run]]:
    """The runs by guest, if guests run side by side: groups in parts of similar size. How they are
    split depends on the runs alone, so that a result does not depend on the number of CPUs. Regions
    are numbered in each guest, so that a run that is alone in its guest always has one plan."""
    found = []
    for members in groups(runs, settings):
        parts = -(-len(members) // _GUEST_RUNS)
        ends = [len(members) * part // parts for part in range(parts + 1)]
        found += [members[begin:end] for begin, end in itertools.pairwise(ends)]
    return [
        [replace(run, region=number) for number, run in enumerate(members, 1)] for members in found
    ]


def load(
    built: Built, rungs: Sequence[Rung], settings: Settings
) -> tuple[dict[str, bytes], list[str]]:
    """The files of ioloop and of the modules that *rungs* need, and the commands that load them."""
    files = {"bin/ioloop": guest_program("ioloop", built.arch).read_bytes()}
    plan: list[str] = []
    types = any(path.startswith("bpf/") for rung in rungs for path, _ in rung.files)
    for module in dict.fromkeys(module for rung in rungs for module in rung.modules):
        if modules.ours_built_in(module.name, built):
            steps = module.steps(settings.overrides)
            if module.name == "blknull" and steps and _CONFIGFS not in plan:
                plan.append(_CONFIGFS)
            plan += steps
            continue
        if module.optional and modules.find(module.name, built) is None:
            continue
        for path in modules.with_dependencies(module.name, built):
            name = path.name.split(".")[0]
            if f"modules/{name}.ko" in files:
                continue
            files[f"modules/{name}.ko"] = elf.without_debug(modules.uncompressed(path), types=types)
            words = module.words(settings.overrides) if name == module.name else []
            plan.append(" ".join([f"insmod /modules/{name}.ko", *words]))
    return files, plan


def prepared(built: Built, rungs: Sequence[Rung], settings: Settings, start: Start) -> Image:
    """A guest that has everything that *rungs* need, and begins with *start*."""
    files, plan = load(built, rungs, settings)
    for path, file in dict.fromkeys(item for rung in rungs for item in rung.files):
        files[path] = file.read_bytes()
    # Loading a large module and making a file system take longer than measuring.
    first = rungs[0]
    if first.alone and first.start:
        commands = (*start.commands, *plan, *first.start, QUIET)
        start, plan = Start(built.vmlinuz, commands, dict(files), built.arch), []
    for begin in dict.fromkeys(rung.begin for rung in rungs):
        plan += begin
    return Image(start, plan, files, first.devices)


def plugin_options(runs: Sequence[Run], settings: Settings) -> str:
    """The options of the plugin for a guest that carries out *runs*."""
    options = [f"flat={FLAT}", *(f"lines={run.lines_region}:{run.line_rounds}" for run in runs)]
    if settings.model:
        options.append("model=1")
    for run in runs:
        if not (run.rung.interrupts or run.rung.waits):
            continue
        options += [f"interrupts={region}:{count}" for region, count in run.interrupts.items()]
        # Not where the kernel polls without an instruction that pauses, as 6.1 does for io_uring.
        if run.rung.waits and not run.rung.polls:
            options += [f"waits={region}" for region in run.interrupts]
    return ",".join(options)


def make_image(
    built: Built, runs: Sequence[Run], settings: Settings, *, checks: bool = False
) -> Image:
    """What a guest is given to carry out *runs*, which must fit one guest; if it *checks* what
    another boot of it gave, in fewer layouts and without long runs."""
    start = Start(built.vmlinuz, arch=built.arch)
    if checks:
        start = replace(start, commands=(QUIET,))  # the first boot has the kernel's functions
    image = prepared(built, [run.rung for run in runs], settings, start)
    plan, files = image.plan, image.files
    for program in {run.rung.program for run in runs if run.rung.program}:
        files[f"bin/{program.name}"] = program.read_bytes()
    plan += [f"file {path}" for path in FACTS]
    if settings.machine.exact:
        plan += [
            f"file {path}"
            for name, data in modules_of(files).items()
            for path in modules.section_files(name, data)
        ]
    plan.append(QUIET)
    if not settings.machine.exact:
        plan += _timed(runs, NOISE_PASSES + settings.passes)
        return image
    plan += rounds(runs, checks=checks)
    if long := [run for run in runs if run.counted_fully or not checks]:
        plan += long_runs(long, built)
    return image


def rounds(runs: Sequence[Run], *, checks: bool) -> list[str]:
    """The calibration and the rounds. What is counted in another way comes later: the emulator
    translates all code again."""
    plan: dict[bool, list[str]] = {False: [], True: []}  # by whether it is counted flat
    for run in runs:
        for part in run.parts(checks=checks):
            command = " ".join([f"run {part.name}", *run.command_of(part)])
            plan[part.flat] += _steps(run, [command])
    fully = plan[False]
    return [
        f"run calibrate /bin/ioloop --calibrate --region={0 if fully else FLAT_ROUNDS}"
        f" --output-format=json --number_ios={_CALIBRATION} --rounds=10",
        *fully,
        *_lines([run for run in runs if run.counted_fully or not checks]),
        *plan[True],
    ]


def modules_of(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The modules among a guest's files, by name."""
    return {Path(path).stem: data for path, data in files.items() if path.endswith(".ko")}


def _steps(run: Run, commands: Sequence[str], *, age: bool = True) -> list[str]:
    """*commands* between the set-up and the clean-up of their rung."""
    rung = run.rung
    aged = [f"age {path}" for path in rung.paths if age]
    return [*rung.setup, *aged, *commands, *rung.cleanup]


def _lines(runs: Sequence[Run]) -> list[str]:
    """The short rounds, whose cache lines are counted. Those in layouts begin after a tick. The
    shortest round counts. Each third one is the shortest, so none of these may have a tick."""
    plan = []
    for run in runs:
        words = run.rung.command(
            run.op, run.block_size, run.lines_region, ios=run.rung.batch,
            rounds=run.line_rounds, layouts=run.line_layouts,
        )  # fmt: skip
        if run.line_layouts > 1:
            words.append("--after_tick")
        plan += _steps(run, [" ".join([f"run lines.{run.region}", *words])])
    return plan


# Dirty pages are written after two seconds instead of 35. The kernel does no work of its own at
# random times or each half second, because that would hide what the runs leave behind, and because
# the task is switched out for it.
_IMPATIENT = (
    (["CONFIG_PROC_SYSCTL"], "write /proc/sys/vm/dirty_expire_centisecs 100"),
    (["CONFIG_PROC_SYSCTL"], "write /proc/sys/vm/dirty_writeback_centisecs 100"),
    (["CONFIG_PROC_SYSCTL", "CONFIG_COMPACTION"], "write /proc/sys/vm/compaction_proactiveness 0"),
    (
        ["CONFIG_DAMON_STAT_ENABLED_DEFAULT"],
        "write /sys/module/damon_stat/parameters/enabled N",
    ),
    (
        ["CONFIG_TRANSPARENT_HUGEPAGE"],
        "write-if /sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs 3600000",
    ),
)
# The same each second. When dirty pages are written depends on the sums of vmstat.
_CALM = ((["CONFIG_PROC_SYSCTL", "CONFIG_SMP"], "write /proc/sys/vm/stat_interval 3600"),)


def _settings(wanted: Sequence[tuple[list[str], str]], built: Built) -> list[str]:
    """Those of the settings for long runs whose options a kernel has."""
    return [step for options, step in wanted if not missing(options, built)]


def long_runs(runs: Sequence[Run], built: Built) -> list[str]:
    """The long runs. They come last because they are counted in another way, and the emulator takes
    a while to change between the two. Nothing that earlier runs left is done in a later sleep."""
    plan = [*_settings(_IMPATIENT, built), "sync", QUIET]
    direct = [run for run in runs if run.rung.is_direct]
    for run in (run for run in runs if not run.rung.is_direct):
        plan += _long_steps(run)
    if direct:
        plan += [*_settings(_CALM, built), QUIET]
    for run in direct:
        plan += _long_steps(run)
    return plan


def _long_steps(run: Run) -> list[str]:
    words = run.rung.command(run.op, run.block_size, run.long_region, long=True)
    return _steps(run, [" ".join([f"run long.{run.region}", *words, f"--drain={DRAIN_MS}ms"])])


def _timed(runs: Sequence[Run], passes: int) -> list[str]:
    """The runs in turn, forwards and backwards, each with the processor's counters if possible."""
    plan = []
    for number in range(passes):
        for run in runs if number % 2 == 0 else reversed(runs):
            words = run.rung.command(
                run.op, run.block_size, run.region, ios=TIMED * run.ios, rounds=TIMED_ROUNDS
            )
            counted = ["--pmu"] if run.counted else []
            command = " ".join([f"run run.{run.region}.{number}", *words, *counted])
            plan += _steps(run, [command], age=False)
    return plan
