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
from typing import Any

from iopath import __version__, guest, host, inline, process, profile, result
from iopath.apt import Apt
from iopath.build import Built, build, debug_info, source_digest
from iopath.cache import Cache, digest_file, digest_of
from iopath.errors import IopathError, UsageError
from iopath.guest import Image, Machine, Qemu
from iopath.kernels import DebianKernel, Tree, list_debian, parse_tree, select
from iopath.paths import guest_program
from iopath.plan import (
    EXTRA_RECORDS,
    KALLSYMS,
    LINE_ROUNDS,
    TIMED,
    TIMED_ROUNDS,
    Run,
    Settings,
    make_image,
    make_runs,
)
from iopath.profile import Layers, Profile, Symbols
from iopath.progress import Reporter, Step


class Session:
    """One run of the command: the cache, the packages and the settings."""

    def __init__(self, cache: Cache, reporter: Reporter) -> None:
        self.cache = cache
        self.reporter = reporter
        self.apt = Apt(cache, reporter.warn)
        self._kernels: list[DebianKernel] | None = None
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
        whole = host.result_of(host.choose_cpu(None), [])
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
            step("booting", 0.0)
            recorded, _ = guest.boot(
                qemu, settings.machine, image, log,
                lambda done: step("measuring", min(1.0, done / len(image.plan))),
            )  # fmt: skip
        texts = {part.name: part.data.decode(errors="replace") for part in recorded}
        records = []
        for run in runs:
            found = [
                host.sample(run, json.loads(texts[f"run.{run.region}.{number}"]))
                for number in range(settings.passes)
            ]
            samples = [one for one, _ in found]
            records.append(
                {
                    "kernel": {"name": name, "release": built.release},
                    **host.record(run, samples, samples, found[0][1]),
                    "rounds": TIMED_ROUNDS,
                    "ios_per_round": TIMED * run.ios,
                    "command": run.rung.command(run.op, run.block_size, run.region),
                }
            )
        return result.describe(name, built, texts, settings), records

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
            with ThreadPoolExecutor(settings.boots) as pool:
                jobs = [
                    pool.submit(self._boot, built, image, machine, settings, qemu, len(runs), step)
                    for machine in settings.machines()
                ]
                boots = [job.result() for job in jobs]
            profiles = {}
            if settings.profile:
                step("reading the profile", 1.0)
                debug = None
                if settings.inline:
                    debug = debug_info(kernel, self.cache, self.apt, step)
                profiles = self._profile(boots[0], runs, settings, debug)
        records = [json.loads((boot / "records.json").read_text()) for boot in boots]
        for texts in records:
            result.check_calibration(json.loads(texts["calibrate"]))
        description = result.describe(name, built, records[0], settings)
        results = []
        for run in runs:
            outputs = [json.loads(texts[f"run.{run.region}"]) for texts in records]
            record = result.figure(name, built.release, run, outputs)
            if settings.profile:
                record["profile"] = profiles[str(run.region)]
            results.append(record)
        return description, results

    def _boot(
        self,
        built: Built,
        image: Image,
        machine: Machine,
        settings: Settings,
        qemu: Qemu,
        runs: int,
        step: Step,
    ) -> Path:
        """The cache entry with the records of booting *image*."""
        plugin = guest_program("pathcount.so") if settings.profile else None
        inputs = {
            "qemu": qemu.digest,
            "machine": {k: v for k, v in vars(machine).items() if k != "accel"} | {"time_limit": 0},
            "digests": built.digests,
            "initramfs": _sha256(image.initramfs()),
            "plugin": digest_file(plugin) if plugin else "",
        }
        log = self.cache.root / "logs" / f"{built.release}-{digest_of(inputs)[:8]}.log"

        def make(folder: Path) -> None:
            with self._cpus:
                step("booting", 0.0)
                records, counts = guest.boot(
                    qemu, machine, image, log,
                    lambda done: step("measuring", min(1.0, done / (runs + EXTRA_RECORDS))),
                    plugin, LINE_ROUNDS,
                )  # fmt: skip
            texts = {record.name: record.data.decode(errors="replace") for record in records}
            if plugin:
                symbols = [
                    line
                    for line in texts.pop(KALLSYMS).splitlines(keepends=True)
                    if line.split(" ", 2)[1] in "tTwW"
                ]
                _pack(folder / "kallsyms.gz", "".join(symbols).encode())
                _pack(folder / "counts.gz", counts)
            (folder / "records.json").write_text(json.dumps(texts))

        return self.cache.entry("result", inputs, make)

    def _profile(
        self, boot: Path, runs: Sequence[Run], settings: Settings, debug: Path | None
    ) -> dict[str, dict[str, Any]]:
        """The profiles of a boot, by region; with source lines if there is *debug* information."""
        layers = Layers(settings.layers)
        inputs = {
            "boot": boot.name,
            "layers": layers.digest,
            "code": [digest_file(Path(module.__file__)) for module in (inline, profile)],
            "debug": str(debug or ""),
            "ios": {str(run.region): run.ios for run in runs},
        }

        def make(folder: Path) -> None:
            program = subprocess.run(
                [process.need("nm", "binutils"), guest_program("ioloop")],
                capture_output=True, text=True, check=False,
            ).stdout  # fmt: skip
            symbols = Symbols(_unpack(boot / "kallsyms.gz"), program)
            found = Profile(_unpack(boot / "counts.gz").splitlines(), symbols, layers)
            regions = {
                str(run.region): found.region(run.region, run.ios)
                | {"lines": found.lines(run.lines_region, run.rung.batch)}
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
