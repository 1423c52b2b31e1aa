# SPDX-License-Identifier: GPL-2.0
"""One file that times rungs on a machine where nothing may be installed, and its result.

The file is a script of the shell (userspace/bundle.sh), followed by the loop, the modules' sources
and the runs. What it prints is an archive of the loop's reports and of the machine's files that a
result tells about.
"""

import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

from iopath import __version__
from iopath.base import files, temporary
from iopath.base.cache import digest_file
from iopath.base.errors import UsageError
from iopath.base.programs import guest_program
from iopath.base.sources import module_sources, source_root
from iopath.host import loop, samples, survey, timing
from iopath.host.samples import Sampled
from iopath.results.result import HardwareRecord, HardwareResult, KernelName
from iopath.rungs import builtin, ioloop_report
from iopath.rungs.runs import NOISE_PASSES, Run

_OWN = ("--number_ios=", "--cpus_allowed=")  # the script adds these


def write(path: Path, runs: Sequence[Run], passes: int) -> None:
    """Write the file *path*, which carries out *runs*."""
    ioloop = guest_program("ioloop")
    texts = {
        "version": f"{__version__}\n",
        "ioloop.digest": f"{digest_file(ioloop)}\n",
        "passes": f"{NOISE_PASSES} {passes}\n",
    }
    for run in runs:
        words = [
            word for word in loop.command(run, 0, ios=run.ios)[1:] if not word.startswith(_OWN)
        ]
        counted = ["--pmu"] if run.counted else []
        line = [run.rung.batch, run.rung.target or "-", *words, *counted]
        texts[f"runs/{run.region}"] = " ".join(map(str, line)) + "\n"
        texts[f"titles/{run.region}"] = f"{run.rung.name} {run.op} {run.block_size}\n"
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz", format=tarfile.USTAR_FORMAT) as tar:
        tar.add(ioloop, "ioloop")
        loader = source_root() / "userspace" / "load.sh"
        for source in [loader, *module_sources()]:
            tar.add(source, str(source.relative_to(source_root())))
        for name, text in texts.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    script = (source_root() / "userspace" / "bundle.sh").read_bytes()
    files.write(path, script + b"FILES\n" + archive.getvalue())


def read(path: Path) -> HardwareResult:
    """The result in what the script has printed to the file *path*."""
    refused = UsageError(f"--from {path}: must be what a file of --bundle has printed")
    with temporary.folder() as folder:
        try:
            with tarfile.open(path) as tar:
                tar.extractall(folder, filter="data")
        except OSError as error:
            raise UsageError(f"--from {path}: {error.strerror or error}") from error
        except tarfile.TarError:
            raise refused from None
        facts = folder / "result/facts"
        if not facts.is_dir():
            raise refused
        if (version := (folder / "version").read_text().strip()) != __version__:
            raise UsageError(f"--from {path}: is of iopath {version}, this is {__version__}")
        cpu = int((facts / "cpu").read_text())
        digest = (folder / "ioloop.digest").read_text().strip()
        whole = timing.described(survey.survey(cpu, facts), survey.describe(facts), digest)
        kernel = KernelName(name=survey.NAME, release=whole.kernels[0].release)
        numbers = sorted(int(one.name) for one in (folder / "result").glob("[0-9]*"))
        whole.results = [_record(folder, number, kernel, cpu) for number in numbers]
    return whole


def _record(folder: Path, number: int, kernel: KernelName, cpu: int) -> HardwareRecord:
    name, op, size = (folder / f"titles/{number}").read_text().split()
    run = Run(number, builtin.select([name])[0], op, int(size))
    at = folder / f"result/{number}"
    ios = int((at / "ios").read_text())
    taken: dict[str, list[dict[str, float]]] = {"noise": [], "pass": []}
    absent: dict[str, str] = {}
    requests: dict[str, float] = {}
    for kind, found in taken.items():
        for sample in range(1, 1 + len([*at.glob(f"{kind}.*")])):
            report = ioloop_report.read((at / f"{kind}.{sample}").read_text())
            counts, absent = samples.sample(run, report)
            requests = samples.requests(report)
            found.append(counts)
    words = ["ioloop", *loop.command(run, cpu, ios=ios)[1:]]
    of = Sampled(kernel, run, absent, loop.ROUNDS, ios, words, requests)
    return samples.record(of, taken["noise"], taken["pass"])
