# SPDX-License-Identifier: GPL-2.0
"""Measure rungs on kernels: prepare each kernel, boot it, and make a result of what it recorded."""

import gzip
import hashlib
import json
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

from iopath import (
    __version__,
    guest,
    host,
    inline,
    longrun,
    noise,
    pathcount,
    process,
    result,
    samples,
    survey,
    symbols,
)
from iopath.apt import Apt
from iopath.build import Built, build, debug_info
from iopath.cache import Cache, digest_file, digest_of
from iopath.errors import IopathError, UsageError
from iopath.guest import Image
from iopath.kernels import DebianKernel, Tree, list_debian, parse_tree, select
from iopath.layers import Layers
from iopath.machine import Machine, Qemu
from iopath.pathcount import BootProfile
from iopath.plan import (
    EXTRA_RECORDS,
    FLAT,
    KALLSYMS,
    LINE_ROUNDS,
    LINES,
    NOISE_PASSES,
    TIMED,
    TIMED_ROUNDS,
    Run,
    Settings,
    make_image,
    make_runs,
)
from iopath.programs import guest_program
from iopath.progress import Reporter, Step
from iopath.sources import source_digest
from iopath.states import States
from iopath.symbols import Symbols


class Session:
    """One run of the command: the cache, the packages and the settings."""

    def __init__(self, cache: Cache, reporter: Reporter) -> None:
        self.cache = cache
        self.reporter = reporter
        self.apt = Apt(cache, reporter.warn)
        self._kernels: list[DebianKernel] | None = None
        self._states = States(cache, reporter.warn)
        self._cpus = threading.BoundedSemaphore(guest.cpu_count())

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
            raise UsageError(
                "host: measured by itself: iopath measure host --json FILE; compare the files"
            )
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
        runs, left_out = make_runs(settings)
        if left_out:
            self.reporter.warn(
                f"left out, a batch takes longer than the timer's tick: {', '.join(left_out)}"
            )
        if not runs:
            raise UsageError("nothing is left to measure: choose other rungs, sizes or operations")
        kernels = [self.find(name) for name in names]
        qemu = Qemu.find()
        if not settings.machine.exact:
            return self._measure_time(names, kernels, runs, settings, qemu)
        with (
            self.reporter.running(),
            ThreadPoolExecutor(len(names)) as pool,
        ):
            jobs = [
                pool.submit(self._measure_one, name, kernel, runs, settings, qemu)
                for name, kernel in zip(names, kernels, strict=True)
            ]
            try:
                measured = _finish(names, jobs, self.reporter)
            except IopathError:
                raise  # nothing runs any more, and a search goes on with other kernels
            except BaseException:
                process.stop_all()
                pool.shutdown(cancel_futures=True)
                raise
        for _, records in measured:
            for record in records:
                for text in noise.findings(record):
                    kernel, rung = record["kernel"]["name"], result.title(record)
                    self.reporter.warn(f"{kernel}: {rung}: {text}")
        return {
            "schema": result.SCHEMA,
            "program": f"iopath {__version__}",
            "mode": "exact",
            "qemu": {"version": qemu.version, "digest": qemu.digest},
            "machine": {
                "cpu": settings.machine.cpu,
                "memory_mib": settings.machine.memory,
                "cmdline": settings.machine.cmdline,
                "seed": settings.machine.seed,
            },
            "programs": {name: digest_file(guest_program(name)) for name in ("init", "ioloop")},
            "source": source_digest(),
            "kernels": [description for description, _ in measured],
            "results": [record for _, records in measured for record in records],
        }

    def _measure_time(
        self,
        names: Sequence[str],
        kernels: Sequence[DebianKernel | Tree],
        runs: Sequence[Run],
        settings: Settings,
        qemu: Qemu,
    ) -> dict[str, Any]:
        """Measure time in guests that run on the processor itself, one after the other."""
        if settings.machine.accel == "kvm":
            guest.need_kvm()
        whole = host.result_of(survey.choose_cpu(None), [])
        whole["kernels"] = []
        with self.reporter.running():
            for name, kernel in zip(names, kernels, strict=True):
                described, records = self._time_one(name, kernel, runs, settings, qemu)
                whole["kernels"].append(described)
                whole["results"] += records
        return whole

    def _time_one(
        self,
        name: str,
        kernel: DebianKernel | Tree,
        runs: Sequence[Run],
        settings: Settings,
        qemu: Qemu,
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        with self.reporter.job(name) as step:
            built = build(kernel, self.cache, self.apt, step)
            image = make_image(built, runs, settings)
            log = self.cache.root / "logs" / f"{built.release}-kvm.log"
            boots = []
            for machine in settings.machines():
                step("booting", 0.0)
                recorded, _ = guest.run(
                    qemu, machine, image, log,
                    lambda done: step("measuring", min(1.0, done / len(image.plan))),
                )  # fmt: skip
                boots.append({part.name: part.data.decode(errors="replace") for part in recorded})
        records = []
        for run in runs:
            found = [
                [
                    samples.sample(run, json.loads(texts[f"run.{run.region}.{number}"]))
                    for number in range(NOISE_PASSES + settings.passes)
                ]
                for texts in boots
            ]
            taken = [[one for one, _ in boot] for boot in found]
            first = [boot[:NOISE_PASSES] for boot in taken]
            own = [boot[NOISE_PASSES:] for boot in taken]
            records.append(
                {
                    "kernel": {"name": name, "release": built.release},
                    **samples.record_boots(run, first, own, found[0][0][1]),
                    "rounds": TIMED_ROUNDS,
                    "ios_per_round": TIMED * run.ios,
                    "command": run.rung.command(run.op, run.block_size, run.region),
                }
            )
        return result.describe(name, built, boots[0], settings), records

    def _measure_one(
        self,
        name: str,
        kernel: DebianKernel | Tree,
        runs: Sequence[Run],
        settings: Settings,
        qemu: Qemu,
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        with self.reporter.job(name) as step:
            step("looking in the cache", 0.0)
            built = build(kernel, self.cache, self.apt, step)
            image = make_image(built, runs, settings)
            machines = settings.machines()

            def boot(number: int, *, full: bool) -> Path:
                return self._boot(built, image, machines[number], qemu, len(runs), step, full=full)

            with ThreadPoolExecutor(settings.boots) as pool:
                jobs = [
                    pool.submit(boot, number, full=settings.profile and not number)
                    for number in range(settings.boots)
                ]
                boots = [job.result() for job in jobs]
            step("reading the counts", 1.0)
            records = [_records(entry) for entry in boots]
            longs = [self._long_runs(entry, runs, settings) for entry in boots]
            results = [
                result.figure(
                    name, built.release, run,
                    [texts[f"run.{run.region}"] for texts in records],
                    [long[str(run.region)] for long in longs],
                )
                for run in runs
            ]  # fmt: skip
            if settings.profile:
                debug = None
                if settings.inline:
                    debug = debug_info(kernel, built, self.cache, self.apt, step)
                # The profile is of the boot that the figure is of: of the first, for most rungs.
                profiles = {
                    number: self._profile(boot(number, full=True), runs, settings, debug)
                    for number in {record["profile_boot"] for record in results}
                }
                for run, record in zip(runs, results, strict=True):
                    number = record["profile_boot"]
                    record["profile"] = profiles[number][str(run.region)]
                    record["profile"]["long_run"] = longs[number][str(run.region)]["functions"]
                    record["profile"]["lines_noise"] = pathcount.lines_noise(
                        record["profile"].pop("code_lines_noise"),
                        [long[str(run.region)]["lines"] for long in longs],
                    )
        return result.describe(name, built, records[0], settings), results

    def _boot(
        self,
        built: Built,
        image: Image,
        machine: Machine,
        qemu: Qemu,
        runs: int,
        step: Step,
        *,
        full: bool,
    ) -> Path:
        """The cache entry with the records of booting *image*; with what a profile takes if *full*,
        which changes no figure."""
        plugin = guest_program("pathcount.so")
        options = f"lines={LINE_ROUNDS},flat={FLAT}" + ("" if full else f",first={LINES}")
        inputs = {
            **guest.inputs(qemu, machine),
            "digests": built.digests,
            "start": _sha256(image.start.initramfs()),
            "image": _sha256(image.payload()),
            "plugin": digest_file(plugin),
            "options": options,
        }
        log = self.cache.root / "logs" / f"{built.release}-{digest_of(inputs)[:8]}.log"

        def make(folder: Path) -> None:
            with self._cpus:
                step("booting", 0.0)
                records, counts = self._states.run(
                    qemu, machine, image, log,
                    lambda done: step("measuring", min(1.0, done / (4 * runs + EXTRA_RECORDS))),
                    plugin, options,
                )  # fmt: skip
            texts = {record.name: record.data.decode(errors="replace") for record in records}
            symbols = [
                line
                for line in texts.pop(KALLSYMS).splitlines(keepends=True)
                if line.split(" ", 2)[1] in "tTwW"
            ]
            _pack(folder / "kallsyms.gz", "".join(symbols).encode())
            _pack(folder / "counts.gz", counts)
            (folder / "records.json").write_text(json.dumps(texts))

        return self.cache.entry("result", inputs, make)

    def _long_runs(
        self, boot: Path, runs: Sequence[Run], settings: Settings
    ) -> dict[str, dict[str, Any]]:
        """The figures of a boot's long runs, and its cache lines, by region."""
        layers = Layers(settings.layers)
        inputs = {
            "boot": boot.name,
            "layers": layers.digest,
            "code": _code(longrun),
            "ios": {str(run.region): (run.long_ios, run.rung.batch) for run in runs},
        }

        def make(folder: Path) -> None:
            found, symbols = _read(boot, layers)
            records = _records(boot)
            longs = longrun.LongRuns(found, symbols, layers)
            figures = {
                str(run.region): longs.figures(run, result.clock(records[f"long.{run.region}"]))
                | {"lines": found.lines(run.lines_region, run.rung.batch)}
                for run in runs
            }
            (folder / "long.json").write_text(json.dumps(figures))

        entry = self.cache.entry("long", inputs, make)
        return json.loads((entry / "long.json").read_text())

    def _profile(
        self, boot: Path, runs: Sequence[Run], settings: Settings, debug: Path | None
    ) -> dict[str, dict[str, Any]]:
        """The profiles of a boot, by region; with source lines if there is *debug* information."""
        layers = Layers(settings.layers)
        inputs = {
            "boot": boot.name,
            "layers": layers.digest,
            "code": _code(inline),
            "debug": str(debug or ""),
            "ios": {str(run.region): run.ios for run in runs},
        }

        def make(folder: Path) -> None:
            found, symbols = _read(boot, layers)
            regions = {
                str(run.region): found.region(run.region, run.ios)
                | {
                    "lines": found.lines(run.lines_region, run.rung.batch),
                    "code_lines_noise": found.code_lines_noise(run.lines_region, run.rung.batch),
                }
                for run in runs
            }
            if debug:
                lines = inline.Lines(debug, symbols)
                for run in runs:
                    counts = found.addresses(run.region, run.ios)
                    regions[str(run.region)]["source"] = inline.break_down(counts, lines, symbols)
            (folder / "profile.json").write_text(json.dumps(regions))

        entry = self.cache.entry("profile", inputs, make)
        return json.loads((entry / "profile.json").read_text())


def _code(module: ModuleType) -> list[str]:
    """The digests of the code that counts are read by."""
    return [digest_file(Path(part.__file__ or "")) for part in (module, pathcount, symbols)]


def _records(boot: Path) -> dict[str, Any]:
    """What a boot recorded: ioloop's reports, and the texts of files."""
    texts = json.loads((boot / "records.json").read_text())
    for name, text in texts.items():
        if name.startswith(("run.", "long.", "calibrate")):
            texts[name] = json.loads(text)
    result.check_calibration(texts["calibrate"])
    return texts


def _read(boot: Path, layers: Layers) -> tuple[BootProfile, Symbols]:
    """What the plugin counted in a boot, and the functions of its kernel."""
    program = subprocess.run(
        [process.need("nm", "binutils"), guest_program("ioloop")],
        capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip
    symbols = Symbols(_unpack(boot / "kallsyms.gz"), program)
    return BootProfile(_unpack(boot / "counts.gz").splitlines(), symbols, layers), symbols


def _pack(path: Path, data: bytes) -> None:
    path.write_bytes(gzip.compress(data, 1, mtime=0))


def _unpack(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode(errors="replace")


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
