# SPDX-License-Identifier: GPL-2.0
"""Run jobs on the workers of a dask.distributed cluster (Documentation/cluster.rst).

A worker has an iopath, a QEMU and a cache of its own. It is sent a job: a kernel to prepare, or a
guest to run and the kernel's image, which it keeps. It computes the digest of all the job's inputs,
including its own programs, and refuses the job if the digest differs. So a result does not depend
on the worker.

If a worker dies, others do its jobs. One job in a hundred is done a second time by
another worker, and the figures or the digests must be equal.
"""

import contextlib
import importlib.util
import logging
import statistics
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from iopath.base import process, prune, temporary
from iopath.base.arch import this_machine
from iopath.base.cache import Cache, cache_root, digest_of
from iopath.base.errors import IopathError, Unreachable, UsageError
from iopath.base.programs import guest_program
from iopath.base.sources import source_digest
from iopath.base.typed import JsonObject
from iopath.guest.machine import Machine, Qemu
from iopath.kernels import emulators, guest_programs, prepare
from iopath.kernels.apt import Apt
from iopath.kernels.prepare import Preparation, PreparedFiles, Unprepared
from iopath.measure import jobs
from iopath.measure.jobs import Job, Recorded
from iopath.rungs import ioloop_report

CHECKED = 100  # one job in so many is done a second time

_WAIT = 30  # seconds until there must be a worker
_POLL = 0.5  # seconds between two looks at whether a job is still wanted
_TRIES = 5  # how often a job is submitted if workers are lost
# Jobs that the scheduler has at a time: some for each thread of a worker, so that none is idle.
_EACH, _FEWEST = 2, 64

# The message about a worker whose digest of a part of a job differs.
_PARTS = {
    "qemu": "its QEMU differs",
    "command": "its QEMU or its iopath differs",
    "start": "its iopath differs (init)",
    "plugin": "its iopath differs (pathcount)",
    "read_by": "its iopath differs",
    "modules.source": "its iopath differs (the modules' source)",
    "digests": "its mirror has other packages of the same versions",
}


class Cluster(Executor):
    """Runs jobs.run and prepare.run on the workers of the scheduler at *address*."""

    def __init__(self, address: str, checked: int = CHECKED) -> None:
        try:
            import dask
            import distributed
        except ImportError as error:
            raise UsageError(
                "--scheduler needs dask.distributed: pip install 'iopath[cluster]'"
            ) from error
        dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"})
        # Its log messages become one line of ours.
        warnings.filterwarnings("ignore", module="distributed")
        for name in logging.root.manager.loggerDict:
            if name.partition(".")[0] == "distributed":
                logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        self._address = address
        self._checked = checked
        self._killed = distributed.KilledWorker
        try:
            self._client = distributed.Client(
                address, timeout=_WAIT, set_as_default=False, name="iopath"
            )
        except (OSError, TimeoutError, ValueError) as error:
            raise IopathError(f"--scheduler {address}: no scheduler answers there") from error
        try:
            self._client.wait_for_workers(1, timeout=_WAIT)
        except TimeoutError as error:
            self._client.close()
            raise IopathError(f"--scheduler {address}: it has no worker") from error
        # The function that is sent must not need iopath, so it is not one of a module.
        able = self._client.run(lambda: importlib.util.find_spec("iopath") is not None)
        if lacking := [worker for worker, has_it in able.items() if not has_it]:
            self._client.close()
            raise IopathError(
                f"worker {lacking[0]} is refused: its Python does not find iopath: install it;"
                " with the Debian package, set PYTHONPATH=/usr/lib/iopath"
            )
        self.workers = sum(worker["nthreads"] for worker in self._workers().values())
        self.places = max(_FEWEST, _EACH * self.workers)  # jobs that it takes at a time
        self._threads = ThreadPoolExecutor(self.places)
        self._lock = threading.Lock()
        self._images: dict[str, Future] = {}  # what workers were sent, by the kernel's digest
        self._builders: set[str] = set()  # workers that prepare a kernel now

    def submit(self, function: Callable, /, *args: object, **kwargs: object) -> Future:
        """Have a worker run a job. It can only run jobs.run and prepare.run."""
        (job,) = args
        if function not in (jobs.run, prepare.run) or kwargs:
            raise TypeError("a cluster runs jobs")
        return self._threads.submit(self._run, job)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)
        self._client.close()

    def _run(self, job: Job | Preparation) -> Recorded | PreparedFiles:
        inputs = job.inputs()
        with self._preferred(job) as workers:
            first, found = self._on_any(job, inputs, workers)
        if int(digest_of(inputs)[:8], 16) % self._checked == 0:
            others = [worker for worker in self._workers() if worker != first]
            if others:
                second, again = self._on_any(job, inputs, others)
                if _compared(found) != _compared(again):
                    what = "count" if isinstance(job, Job) else "build"
                    raise Unreachable(
                        f"the workers {first} and {second} do not {what} the same for"
                        f" {job.release}: check both machines"
                    )
        return found

    @contextlib.contextmanager
    def _preferred(self, job: Job | Preparation) -> Iterator[Sequence[str] | None]:
        """The worker that should do the job, if it matters. If kernels of a repository are prepared
        one after the other, one worker builds them all, each time only what changed."""
        if isinstance(job, Job):
            yield None
            return
        with self._lock:
            idle = sorted(
                set(self._workers()) - self._builders,
                key=lambda worker: digest_of({"worker": worker, "place": job.kernel.place}),
            )
            chosen = set(idle[:1])
            self._builders |= chosen
        try:
            yield list(chosen) or None
        finally:
            with self._lock:
                self._builders -= chosen

    def _on_any(
        self,
        job: Job | Preparation,
        inputs: dict[str, object],
        workers: Sequence[str] | None = None,
    ) -> tuple[str, Recorded | PreparedFiles]:
        """Have one of *workers* do the job, or any worker if these are lost. Returns its address
        and its result."""
        for _ in range(_TRIES):
            future = data = None
            try:
                data = self._image(inputs["vmlinuz"], job) if isinstance(job, Job) else None
                future = self._client.submit(
                    run_sealed, job, inputs, data, pure=False, retries=0, workers=workers,
                    allow_other_workers=workers is not None,
                )  # fmt: skip
                ended = threading.Event()
                future.add_done_callback(lambda _, ended=ended: ended.set())
                while not ended.wait(_POLL):
                    self._check(job)
                return future.result()
            except (CancelledError, self._killed, OSError):
                # The worker is lost, or data that only it had, or the scheduler.
                self._check(job)
                with self._lock:
                    if data is not None and self._images.get(inputs["vmlinuz"]) is data:
                        del self._images[inputs["vmlinuz"]]
            finally:
                if future is not None:
                    future.cancel()
        raise Unreachable(f"the workers of {self._address} died {_TRIES} times with this job")

    def _image(self, digest: str, job: Job) -> Future:
        """The kernel of a job, which is sent once; workers pass it on to each other."""
        with self._lock:
            if digest not in self._images:
                image = job.image.start.vmlinuz.read_bytes()
                self._images[digest] = self._client.scatter(image, hash=False)
            return self._images[digest]

    def _check(self, job: Job | Preparation) -> None:
        """Raise an error if the scheduler is lost, or nobody waits for the job any more."""
        process.check_stopped()
        if self._client.status != "running":
            raise Unreachable(
                f"the scheduler {self._address} is gone: finished jobs are kept, so run the command"
                " again"
            )
        if isinstance(job, Job) and not job.progress.exists():
            raise process.Stopped

    def _workers(self) -> JsonObject:
        return self._client.scheduler_info(n_workers=-1)["workers"]


def run_sealed(
    job: Job | Preparation, inputs: dict[str, object], image: bytes | None
) -> tuple[str, Recorded | PreparedFiles]:
    """On a worker: carry out a job with this machine's programs and cache. Raises IopathError if
    they are not those that *inputs* were computed from."""
    import distributed

    address = distributed.get_worker().address
    cache = Cache(cache_root())
    try:
        if isinstance(job, Preparation):
            return address, _prepare(job, inputs, cache, address)
        assert image is not None
        return address, _count(job, inputs, image, cache, address)
    finally:
        cache.release()
        if isinstance(job, Preparation):
            prune.keep_in_bounds(cache.root)


def _prepare(
    job: Preparation, inputs: dict[str, object], cache: Cache, address: str
) -> PreparedFiles:
    _check_equal({"modules.source": source_digest()}, inputs, address)
    try:
        local = job.here(cache, Apt(cache, lambda text: None))
    except IopathError as error:
        raise Unprepared(f"worker {address}: {error}") from error
    _check_equal(local.inputs(), inputs, address)
    try:
        return prepare.run(local)
    except IopathError as error:
        raise Unprepared(f"worker {address}: {error}") from error


def _count(
    job: Job, inputs: dict[str, object], image: bytes, cache: Cache, address: str
) -> Recorded:
    def keep(folder: Path) -> None:
        (folder / "vmlinuz").write_bytes(image)

    for arch in {this_machine(), job.image.start.arch}:
        if not guest_programs.are_built(arch):
            guest_programs.build(
                arch, cache, Apt(cache, lambda text: None), lambda what, part: None
            )
    kept = cache.entry("sent", {"vmlinuz": inputs["vmlinuz"]}, keep)
    with temporary.folder() as folder:
        progress = folder / "progress"
        progress.touch()
        local = replace(
            job,
            qemu=_emulator(job.machine, cache),
            image=replace(job.image, start=replace(job.image.start, vmlinuz=kept / "vmlinuz")),
            plugin=guest_program("pathcount.so"),
            cache=cache.root,
            progress=progress,
        )
        _check_equal(local.inputs(), inputs, address)
        return jobs.run(local)


def _emulator(machine: Machine, cache: Cache) -> Qemu:
    """This machine's own, or that of the suite that the sender asked for."""
    if not machine.emulator:
        return Qemu.find(machine.arch, cache)
    apt = Apt(cache, lambda text: None)
    return emulators.emulator(machine.emulator, machine.arch, cache, apt, lambda what, part: None)


def _check_equal(found: dict[str, object], inputs: dict[str, object], address: str) -> None:
    """Raise Unreachable if a part of what a worker *found* differs from the sender's *inputs*."""
    for part, value in found.items():
        if value != inputs.get(part):
            why = _PARTS.get(part, f"its {part} differs")
            raise Unreachable(f"worker {address} is refused: {why}")


def _compared(found: Recorded | PreparedFiles) -> object:
    """What must be the same from two workers."""
    return found.compared() if isinstance(found, PreparedFiles) else figures(found)


def figures(recorded: Recorded) -> dict[str, float]:
    """The figure of each run: the median of the rounds without an interrupt. Where ticks fall may
    differ between two guests (Documentation/measuring.rst)."""
    found = {}
    for name, text in recorded.texts.items():
        if name.startswith("run."):
            calm = [part.tsc for part in ioloop_report.read(text).rounds if part.quiet]
            found[name] = statistics.median(calm) if calm else 0.0
    return found
