# SPDX-License-Identifier: GPL-2.0
"""The images of Documentation/examples: ./iopath-container with podman counts what is counted here;
and a cluster, its scheduler, a worker that prepares the kernel and counts, and the command, each in
a container with the rights that workers.yaml asks for. They take minutes, so they are run by name
only."""

import contextlib
import json
import os
import platform
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.command import build_into
from helpers.compiled import LOG, compiled
from iopath.base.process import need
from iopath.base.sources import source_root
from iopath.measure.session import Session
from iopath.results import result
from iopath.results.result import ExactResult
from iopath.results.syscalls import CALL

ROOT = source_root()
EXAMPLES = ROOT / "Documentation/examples"
SCHEDULER = "tcp://127.0.0.1:18786"
KERNEL = "debian:6.1"
(SUITE,) = re.findall(r"^ARG DEBIAN=(\w+)$", (EXAMPLES / "Containerfile").read_text(), re.MULTILINE)

# A privileged container on the host's network, made by unshare and mount.
_INSIDE = """
mount --bind "$0" "$0" && cd "$0" && mount -t proc proc proc && mount --rbind /dev dev &&
mount -t tmpfs tmpfs tmp && pivot_root . mnt && umount -l /mnt && exec "$@"
"""

# podman as a program: its images, and what it takes without the right to raise limits.
_ENGINE = """\
#!/bin/sh
export CONTAINERS_CONF={0}/containers.conf
exec podman --root {0}/storage --runroot {0}/run "$@"
"""
_CONFIGURATION = """\
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
netns = "host"
[engine]
runtime = "runc"
"""


def debian(suite: str, folder: Path) -> Path:
    """The file system of Debian's image."""
    path = folder / f"{suite}.tar"
    words = [need("mmdebstrap", "mmdebstrap"), "--quiet", "--variant=minbase", suite, path]
    subprocess.run(words, check=True)
    return path


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What IOPATH_ENGINE names: podman that has Debian's image, with images of its own."""
    folder = tmp_path_factory.mktemp("engine")
    subprocess.run(["userspace/setup.sh", "container"], cwd=ROOT, check=True)
    path = folder / "podman"
    path.write_text(_ENGINE.format(folder))
    path.chmod(0o755)
    (folder / "containers.conf").write_text(_CONFIGURATION)
    image = f"docker.io/library/debian:{SUITE}"
    subprocess.run([path, "import", "--quiet", debian(SUITE, folder), image], check=True)
    yield path
    subprocess.run([path, "rmi", "--all", "--force"], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize(
    ("build", "calls"),
    [("SYNC", {"fsync": 100, "write": 100}), ("UNBUFFERED", {"write": 1600})],
    ids=["fsync", "unbuffered"],
)
def test_a_program_in_a_container(
    engine: Path, session: Session, tmp_path: Path, build: str, calls: dict[str, int]
) -> None:
    """With one version of QEMU, all records are equal to those of this machine, digit for digit:
    system calls, requests and instructions. The container does not know what was measured here."""
    program = compiled(tmp_path, f"#define {build} 1\n{LOG}")
    cache = tmp_path / "cache"
    build_into(session, KERNEL, cache)
    env = {**os.environ, "IOPATH_ENGINE": str(engine)}
    words = ["run", KERNEL, "--device=mq", "--", program, "/dev/blknull2"]

    def ran(command: Path, *options: str, cache: Path) -> ExactResult:
        out = tmp_path / f"{command.name}.json"
        done = subprocess.run(
            [command, *words[:3], *options, "--json", out, *words[3:]], cwd=tmp_path,
            env={**env, "IOPATH_CACHE": str(cache)}, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return result.load(out)

    inside = ran(ROOT / "iopath-container", cache=cache)
    assert any((cache / "result").iterdir())
    outside = ran(ROOT / "build/bin/iopath", f"--emulator={SUITE}", cache=session.cache.root)
    assert inside.qemu.version == outside.qemu.version
    assert inside.results == outside.results
    times = {one.op: one.calls.times[0] for one in inside.results if one.calls.kind == CALL}
    assert times.items() >= calls.items()


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Path]]:
    """The file systems of two containers: of the scheduler and its worker, and of the command."""
    folder = tmp_path_factory.mktemp("container")
    suite = platform.freedesktop_os_release()["VERSION_CODENAME"]  # this machine's QEMU
    for words in (["userspace/setup.sh", "container"], ["make", "-s", "deb"]):
        subprocess.run(words, cwd=ROOT, check=True)
    base_files = debian(suite, folder)

    def buildah(*words: str | Path) -> str:
        return subprocess.run(
            [need("buildah", "buildah"), "--root", folder / "storage", "--runroot", folder / "run",
             "--storage-driver", "vfs", *words],
            env={**os.environ, "BUILDAH_ISOLATION": "chroot"}, check=True, text=True,
            stdout=subprocess.PIPE,
        ).stdout.strip()  # fmt: skip

    base = buildah("from", "scratch")
    buildah("add", "--quiet", base, base_files, "/")
    buildah("commit", "--quiet", base, f"debian:{suite}")
    buildah(
        "bud", "--quiet", "--pull-never", "--tag", "iopath", "--build-arg", f"DEBIAN={suite}",
        "--file", EXAMPLES / "Containerfile", ROOT / "build/deb",
    )  # fmt: skip
    names = [buildah("from", "--pull-never", "iopath") for _ in range(2)]
    try:
        yield [Path(buildah("mount", name)) for name in names]
    finally:
        buildah("rm", base, *names)


def inside(root: Path, *words: str) -> list[str | Path]:
    """The command line that runs *words* in a container on *root*, with the image's variables."""
    image = (EXAMPLES / "Containerfile").read_text()
    (variables,) = [line.split()[1:] for line in image.splitlines() if line.startswith("ENV ")]
    return [
        "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", *variables,
        "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", _INSIDE, root, *words,
    ]  # fmt: skip


@contextlib.contextmanager
def running(log: Path, root: Path, *words: str) -> Iterator[None]:
    with log.open("w") as output:
        child = subprocess.Popen(
            inside(root, *words), stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        try:
            yield
        finally:
            child.kill()  # unshare ignores SIGTERM; its child is killed with it
            child.wait()


def test_a_cluster_of_containers(roots: list[Path], tmp_path: Path) -> None:
    cluster, sender = roots
    scheduler = ["dask", "scheduler", "--host", "127.0.0.1", "--port", "18786", "--no-dashboard"]
    worker = ["dask", "worker", "--nthreads", "1", "--no-dashboard", SCHEDULER]
    with (
        running(tmp_path / "scheduler", cluster, *scheduler),
        running(tmp_path / "worker", cluster, *worker),
    ):
        time.sleep(5)
        words = ["iopath", "measure", KERNEL, "--rung=syscall", "--boots=1", "--json=/root/json"]
        done = subprocess.run(
            inside(sender, *words, "--scheduler", SCHEDULER),
            capture_output=True, text=True, check=False, timeout=1200,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr + (tmp_path / "worker").read_text()
    assert " is prepared here: " not in done.stderr
    (record,) = json.loads((sender / "root/json").read_text())["results"]
    assert record["instructions_per_io"] > 100
    assert any((cluster / "var/cache/iopath/modules").iterdir())
