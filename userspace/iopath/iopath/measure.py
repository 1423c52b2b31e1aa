# SPDX-License-Identifier: GPL-2.0
"""Measure rungs on kernels: prepare each kernel, boot it, and make a result of what it recorded."""

import hashlib
import json
import lzma
import re
import statistics
import subprocess
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iopath import __version__, guest, process
from iopath.apt import Apt
from iopath.build import Built, build
from iopath.cache import Cache, digest_of
from iopath.errors import IopathError, UsageError
from iopath.guest import Image, Machine, Qemu
from iopath.kernels import DebianKernel, Tree, list_debian, parse_tree, select
from iopath.paths import guest_program
from iopath.progress import Reporter, Step
from iopath.rungs import OPS, Rung

SCHEMA = 1

# What of a kernel's configuration lengthens or shortens an I/O's path.
_OPTIONS = re.compile(
    r"CONFIG_(PREEMPT\w*|HZ|NO_HZ\w*|CPU_MITIGATIONS|SPECULATION_MITIGATIONS|(?:MITIGATION_)?"
    r"(?:RETPOLINE|RETHUNK|PAGE_TABLE_ISOLATION|CALL_DEPTH_TRACKING|SRSO)|X86_KERNEL_IBT|CFI_CLANG|CFI"
    r"|BLK_CGROUP\w*|BLK_DEV_IO_TRACE|BLK_WBT|BUFFER_HEAD|FUNCTION_TRACER|HARDENED_USERCOPY"
    r"|INIT_ON_(?:ALLOC|FREE)_DEFAULT_ON|FORTIFY_SOURCE|RANDSTRUCT\w*|STACKPROTECTOR\w*|LSM"
    r"|DEBUG_LIST|LIST_HARDENED|SLUB_DEBUG|KASAN|LOCKDEP|PROVE_LOCKING|SECURITY|MEMCG"
    r"|CC_OPTIMIZE_FOR_\w+|LTO_\w+|AUTOFDO_CLANG|VIRT_CPU_ACCOUNTING_GEN|CONTEXT_TRACKING\w*)=(.*)"
)
_QUIET_LIMIT = 300  # seconds of the guest's time until background work must have ceased
_CALIBRATION = 20_000  # iterations of a loop of known length, in each of ten rounds
_OVERHEAD = 64  # instructions between two readings of the counter that are not the loop


@dataclass(frozen=True)
class Settings:
    """What is measured, and on what machine."""

    rungs: Sequence[Rung]
    ops: Sequence[str] = OPS
    block_sizes: Sequence[int] = (4096,)
    machine: Machine = field(default_factory=Machine)
    fill: bool = True  # whether blknull fills what it must not leave uninitialised


class Session:
    """One run of the command: the cache, the packages and the settings."""

    def __init__(self, cache: Cache, reporter: Reporter) -> None:
        self.cache = cache
        self.reporter = reporter
        self.apt = Apt(cache, reporter.warn)
        self._kernels: list[DebianKernel] | None = None

    def debian_kernels(self, *, update: bool = False) -> list[DebianKernel]:
        if self._kernels is None or update:
            self._kernels = list_debian(self.apt.packages(update=update))
        return self._kernels

    def find(self, name: str) -> DebianKernel | Tree:
        """The kernel that *name* asks for."""
        kind, _, spec = name.partition(":")
        if kind == "debian" and spec:
            kernel, passed_over = select(spec, self.debian_kernels())
            for newer in passed_over:
                self.reporter.warn(
                    f"{name}: {newer.release} is passed over: {newer.missing} is gone"
                )
            return kernel
        if kind == "tree" and spec:
            return parse_tree(spec)
        if name == "host":
            raise UsageError("host: measuring the running kernel is not possible yet")
        raise UsageError(
            f"{name}: not a kernel; ask for debian:SERIES, debian:RELEASE or tree:PATH,"
            " e.g. debian:6.1"
        )

    def measure(self, names: Sequence[str], settings: Settings) -> dict[str, Any]:
        """Measure the kernels *names*; side by side, as far as there are CPUs.

        The result is as result.schema.json says. If any kernel fails, the others' measurements are
        finished (and cached) before the first failure is raised.
        """
        repeated = [name for name in names if list(names).count(name) > 1]
        if repeated:
            raise UsageError(f"{repeated[0]}: asked for twice")
        kernels = [self.find(name) for name in names]
        qemu = Qemu.find()
        with (
            self.reporter.running(),
            ThreadPoolExecutor(guest.cpu_count()) as pool,
        ):
            jobs = [
                pool.submit(self._measure_one, name, kernel, settings, qemu)
                for name, kernel in zip(names, kernels, strict=True)
            ]
            try:
                measured = _finish(names, jobs, self.reporter)
            except BaseException:
                process.stop_all()
                pool.shutdown(cancel_futures=True)
                raise
        return {
            "schema": SCHEMA,
            "program": f"iopath {__version__}",
            "mode": "exact",
            "qemu": {"version": qemu.version, "digest": qemu.digest},
            "machine": {
                "cpu": settings.machine.cpu,
                "memory_mib": settings.machine.memory,
                "cmdline": settings.machine.cmdline,
                "seed": settings.machine.seed,
            },
            "kernels": [description for description, _ in measured],
            "results": [result for _, results in measured for result in results],
        }

    def _measure_one(
        self, name: str, kernel: DebianKernel | Tree, settings: Settings, qemu: Qemu
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        with self.reporter.job(name) as step:
            step("looking in the cache", 0.0)
            built = build(kernel, self.cache, self.apt, step)
            runs = _runs(settings)
            image = _image(built, runs, settings)
            entry = self._boot(built, image, settings.machine, qemu, len(runs), step)
        records = json.loads((entry / "records.json").read_text())
        _check_calibration(json.loads(records["calibrate"]))
        description = _describe(name, built, records, settings)
        results = [
            _figure(name, built.release, run, json.loads(records[f"run.{run.region}"]))
            for run in runs
        ]
        return description, results

    def _boot(
        self,
        built: Built,
        image: Image,
        machine: Machine,
        qemu: Qemu,
        runs: int,
        step: Step,
    ) -> Path:
        """The cache entry with the records of booting *image*."""
        inputs = {
            "qemu": qemu.digest,
            "machine": vars(machine) | {"time_limit": 0},
            "digests": built.digests,
            "initramfs": digest_of({"sha256": _sha256(image.initramfs())}),
        }
        log = self.cache.root / "logs" / f"{built.release}-{digest_of(inputs)[:8]}.log"

        def make(folder: Path) -> None:
            step("booting", 0.0)
            records = guest.boot(
                qemu, machine, image, log,
                lambda done: step("measuring", min(1.0, done / (runs + _EXTRA_RECORDS))),
            )  # fmt: skip
            texts = {record.name: record.data.decode(errors="replace") for record in records}
            (folder / "records.json").write_text(json.dumps(texts))

        return self.cache.entry("result", inputs, make)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _finish(
    names: Sequence[str], jobs: Sequence[Future], reporter: Reporter
) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    done, failures = [], []
    for name, job in zip(names, jobs, strict=True):
        try:
            done.append(job.result())
        except IopathError as error:
            failures.append(f"{name}: {error}")
    for failure in failures[1:]:
        reporter.warn(failure)
    if failures:
        raise IopathError(failures[0])
    return done


# What a guest does.


@dataclass(frozen=True)
class Run:
    """One run of ioloop in the guest."""

    region: int
    rung: Rung
    op: str
    block_size: int


def _runs(settings: Settings) -> list[Run]:
    runs: list[Run] = []
    for rung in settings.rungs:
        sizes = settings.block_sizes if rung.device else (0,)
        for size in sizes:
            for op in rung.ops(settings.ops):
                runs.append(Run(len(runs) + 1, rung, op, size))
    return runs


# Files of the guest that say on what it measured.
_FACTS = (
    "/proc/version",
    "/proc/cmdline",
    "/proc/cpuinfo",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
)
_EXTRA_RECORDS = len(_FACTS) + 3


def _image(built: Built, runs: Sequence[Run], settings: Settings) -> Image:
    parameters = [] if settings.fill else ["zero_fill=0"]
    files = {
        "init": guest_program("init").read_bytes(),
        "bin/ioloop": guest_program("ioloop").read_bytes(),
    }
    plan = []
    for path in _with_dependencies("blknull", built):
        files[f"modules/{path.name.split('.')[0]}.ko"] = _uncompressed(path)
        words = parameters if path.stem == "blknull" else []
        plan.append(" ".join([f"insmod /modules/{path.name.split('.')[0]}.ko", *words]))
    plan += [f"file {path}" for path in _FACTS]
    plan += [
        f"quiet {_QUIET_LIMIT}",
        "run calibrate /bin/ioloop --calibrate --region=0 --output-format=json"
        f" --number_ios={_CALIBRATION} --rounds=10",
    ]
    for run in runs:
        command = run.rung.command(run.op, run.block_size, run.region)
        plan.append(" ".join([f"run run.{run.region}", *command]))
    return Image(built.vmlinuz, plan, files)


def _with_dependencies(module: str, built: Built) -> list[Path]:
    """The module files to load, in their order, so that *module* of ours is there."""
    path = built.modules.get(module)
    if path is None:
        raise IopathError(f"the build for {built.release} made no {module}.ko")
    names = subprocess.run(
        [process.need("modinfo", "kmod"), "-F", "depends", path],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    needed = []
    for name in filter(None, names.split(",")):
        if name in built.modules:
            needed += _with_dependencies(name, built)
            continue
        found = built.own_modules and next(built.own_modules.rglob(f"{name}.ko*"), None)
        if not found:
            raise IopathError(f"{module}.ko needs the module {name}, which {built.release} lacks")
        needed.append(found)
    return [*needed, path]


def _uncompressed(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(data)
    if path.suffix == ".zst":
        zstd = process.need("zstd", "zstd")
        return subprocess.run([zstd, "-dc", path], capture_output=True, check=True).stdout
    return data


# What the figures are.


def _calm(record: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rounds of a run, and those of them that no interrupt came into."""
    rounds = [part for job in record["jobs"] for part in job["rounds"]]
    return rounds, [part for part in rounds if not part["interrupts"]]


def _check_calibration(record: dict[str, Any]) -> None:
    """A loop of known length must count to that length, or no figure means anything."""
    expected = record["expected_instructions"]
    _, calm = _calm(record)
    measured = [part["tsc"] for part in calm]
    if not measured or not 0 <= min(measured) - expected <= max(measured) - expected <= _OVERHEAD:
        raise IopathError(
            f"the guest's clock does not count instructions: a loop of {expected} took"
            f" {', '.join(map(str, measured)) or 'too long'}"
        )


def _figure(name: str, release: str, run: Run, record: dict[str, Any]) -> dict[str, Any]:
    """The record of one rung. The figure is the median over the rounds that no interrupt came into,
    the spread their largest less their smallest."""
    rounds, calm_rounds = _calm(record)
    calm = [part["tsc"] / part["ios"] for part in calm_rounds]
    if len(calm) < len(rounds) / 4:
        raise IopathError(
            f"{run.rung.name} {run.op}: only {len(calm)} of {len(rounds)} rounds went without"
            " an interrupt; try a smaller block size"
        )
    whole = sum(part["tsc"] for part in rounds) / sum(part["ios"] for part in rounds)
    return {
        "kernel": {"name": name, "release": release},
        "rung": run.rung.name,
        "op": run.op,
        "block_size": run.block_size,
        "instructions_per_io": round(statistics.median(calm), 4),
        "spread": round(max(calm) - min(calm), 4),
        "mean_with_interrupts": round(whole, 4),
        "rounds": len(rounds),
        "rounds_with_interrupts": len(rounds) - len(calm),
        "ios_per_round": rounds[0]["ios"],
        "batch": run.rung.batch,
        "command": run.rung.command(run.op, run.block_size, run.region),
    }


def _describe(
    name: str, built: Built, records: dict[str, str], settings: Settings
) -> dict[str, Any]:
    """Everything about the kernel and the guest that could explain a difference."""
    version = records["/proc/version"].strip()
    compiler = re.search(r"\(((?:\S*gcc|clang)[^()]*(?:\([^()]*\)[^(),]*)?)", version)
    cpu = re.search(r"model name\s*:\s*(.*)", records["/proc/cpuinfo"])
    options = {
        match.group(1): match.group(2).strip('"')
        for match in map(_OPTIONS.match, built.config.read_text().splitlines())
        if match
    }
    return {
        "name": name,
        "release": built.release,
        "version": built.version,
        "origin": built.origin,
        "banner": version,
        "compiler": compiler.group(1).strip() if compiler else "unknown",
        "cpu_model": cpu.group(1) if cpu else "unknown",
        "cmdline": records["/proc/cmdline"].strip(),
        "clocksource": records[_FACTS[3]].strip(),
        "config": options,
        "digests": built.digests,
        "modules": {key: _modinfo(path) for key, path in built.modules.items()},
        "zero_fill": settings.fill,
        "quiet_after_seconds": len(records["quiet"].splitlines()),
    }


def _modinfo(path: Path) -> dict[str, str]:
    """What the module says of its own build."""
    output = subprocess.run(
        [process.need("modinfo", "kmod"), path], capture_output=True, text=True, check=False
    ).stdout
    facts = dict(line.split(":", 1) for line in output.splitlines() if ":" in line)
    kept = ("version", "srcversion", "vermagic", "iopath_shims")
    return {key: facts[key].strip() for key in kept if key in facts}


def load(path: Path) -> dict[str, Any]:
    """A result file, checked. Raises IopathError for one that is not ours or newer than we are."""
    try:
        result = json.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise IopathError(f"{path} is not a result file: {error}") from error
    version = result.get("schema") if isinstance(result, dict) else None
    if isinstance(version, int) and version > SCHEMA:
        raise IopathError(
            f"{path} has schema {version}, this iopath knows up to {SCHEMA}: use a newer iopath"
        )
    validate(result, str(path))
    return result


def validate(result: object, what: str) -> None:
    import jsonschema

    schema = json.loads((Path(__file__).parent / "result.schema.json").read_text())
    try:
        jsonschema.validate(result, schema)
    except jsonschema.ValidationError as error:
        place = "/".join(map(str, error.absolute_path)) or "the top"
        raise IopathError(f"{what} is not a result file: at {place}: {error.message}") from error
