# SPDX-License-Identifier: GPL-2.0
"""Get and build the kernels that the tests boot: prepare.py KERNEL.... Prints TAP. It takes long if
none is cached, so tests without kernels run meanwhile."""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from rich.console import Console

from iopath.base.cache import Cache, cache_root
from iopath.base.progress import Reporter
from iopath.base.sources import source_root
from iopath.measure.session import Session

sys.path.append(str(source_root() / "userspace/iopath/tests"))

from helpers.linux_source import LinuxSource

session = Session(Cache(cache_root()), Reporter(Console(stderr=True)))


def packaged(name: str) -> Callable[[], object]:
    return lambda: session.find(name).prepare(session.cache, session.apt, lambda what, part: None)


def compiled(last: str) -> Callable[[], object]:
    return lambda: LinuxSource(session).tree("minimal.config", "distribution.config", last)


wanted: dict[str, Callable[[], object]] = {
    "debug.config": compiled("debug.config"),
    **{name: packaged(name) for name in sys.argv[1:]},
    "minimal.config": lambda: LinuxSource(session).tree("minimal.config"),
}
print(f"TAP version 13\n1..{len(wanted)}")
failed = 0
with ThreadPoolExecutor(2) as pool:
    jobs = {name: pool.submit(make) for name, make in wanted.items()}
    for number, (name, job) in enumerate(jobs.items(), 1):
        error = job.exception()
        print(f"{'not ok' if error else 'ok'} {number} - {name}{f': {error}' if error else ''}")
        failed += error is not None
sys.exit(failed > 0)
