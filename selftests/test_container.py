# SPDX-License-Identifier: GPL-2.0
"""A cluster from the image of Documentation/examples: its scheduler, a worker that prepares the
kernel and counts, and the command, each in a container with the rights that workers.yaml asks for.
It takes minutes, so it is run by name only."""

import contextlib
import json
import os
import platform
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from iopath.base.process import need
from iopath.base.sources import source_root

ROOT = source_root()
EXAMPLES = ROOT / "Documentation/examples"
SCHEDULER = "tcp://127.0.0.1:18786"
KERNEL = "debian:6.1"

# A privileged container on the host's network, made by unshare and mount.
_INSIDE = """
mount --bind "$0" "$0" && cd "$0" && mount -t proc proc proc && mount --rbind /dev dev &&
mount -t tmpfs tmpfs tmp && pivot_root . mnt && umount -l /mnt && exec "$@"
"""


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Path]]:
    """The file systems of two containers: of the scheduler and its worker, and of the command."""
    folder = tmp_path_factory.mktemp("container")
    suite = platform.freedesktop_os_release()["VERSION_CODENAME"]  # this machine's QEMU
    for words in (["userspace/setup.sh", "container"], ["make", "-s", "deb"]):
        subprocess.run(words, cwd=ROOT, check=True)
    debootstrap = [need("mmdebstrap", "mmdebstrap"), "--quiet", "--variant=minbase"]
    subprocess.run([*debootstrap, suite, folder / "base.tar"], check=True)

    def buildah(*words: str | Path) -> str:
        return subprocess.run(
            [need("buildah", "buildah"), "--root", folder / "storage", "--runroot", folder / "run",
             "--storage-driver", "vfs", *words],
            env={**os.environ, "BUILDAH_ISOLATION": "chroot"}, check=True, text=True,
            stdout=subprocess.PIPE,
        ).stdout.strip()  # fmt: skip

    base = buildah("from", "scratch")
    buildah("add", "--quiet", base, folder / "base.tar", "/")
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
