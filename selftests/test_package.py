# SPDX-License-Identifier: GPL-2.0
"""The Debian packages, as a user has them: installed, used and removed in a guest that is a whole
Debian, of the release whose kernel it runs."""

import contextlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from test_docs import commands

from iopath import process
from iopath.apt import find_mirrors
from iopath.cache import digest_file
from iopath.measure import Session
from iopath.process import need
from iopath.sources import source_root

ROOT = source_root()
SUITES = {"6.1": "bookworm", "6.12": "trixie"}
KERNELS = os.environ.get("KERNEL", "6.1 6.12").replace("debian:", "").split()
PACKAGES = (
    "linux-image-amd64", "linux-headers-amd64", "dkms", "kmod", "udev", "procps", "initramfs-tools",
    "linux-perf", "python3-cattr", "python3-debian", "python3-jinja2", "python3-jsonschema",
    "python3-matplotlib", "python3-rich",
)  # fmt: skip
_MINUTES = 60


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A disk with the packages and the test."""
    for command in (["userspace/setup.sh", "package"], ["make", "-s", "deb"]):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    folder = tmp_path_factory.mktemp("packages")
    for pattern in ("iopath*.deb", "iopath_*.tar.xz"):
        for path in (ROOT / "build/deb").glob(pattern):
            shutil.copy(path, folder)
    shutil.copy(ROOT / "selftests/package/user.sh", folder)
    lines = [*commands(ROOT / "Documentation/host.rst"), *commands(ROOT / "README.md")]
    # The others are of guests, which the other tests boot; user.sh does what make does.
    ours = r"perf |build/bin/ioloop |.* host |.* compare before.json "
    lines = [line for line in lines if re.match(ours, line)]
    assert len(lines) >= 12, lines
    (folder / "commands").write_text(
        "".join(f"{line}\n".replace("build/bin/", "") for line in lines)
    )
    _make_disk(folder, folder.with_suffix(".img"), "64M")
    return folder.with_suffix(".img")


def _make_disk(folder: Path, image: Path, size: str) -> None:
    subprocess.run(
        [need("mke2fs", "e2fsprogs"), "-q", "-F", "-t", "ext4", "-d", folder, image, size],
        check=True,
    )


def debian(session: Session, suite: str) -> Path:
    """A folder with a Debian on a disk, its kernel and initrd."""
    init = ROOT / "selftests/package/init.sh"

    def make(folder: Path) -> None:
        main, security = find_mirrors()
        root = folder / "root"
        status = process.run(
            [need("mmdebstrap", "mmdebstrap"), "--variant=minbase",
             f"--include={','.join(PACKAGES)}",
             '--aptopt=APT::Install-Recommends "false"', "--dpkgopt=force-unsafe-io",
             "--dpkgopt=path-exclude=/usr/share/locale/*",
             '--customize-hook=rm "$1"/etc/dpkg/dpkg.cfg.d/99mmdebstrap',
             f"--customize-hook=copy-in {init} /usr/local/sbin", suite, root,
             f"deb {main} {suite} main", f"deb {security} {suite}-security main"],
            output=folder / "log",
        )  # fmt: skip
        assert status == 0, (folder / "log").read_text()[-2000:]
        for part in ("vmlinuz", "initrd.img"):
            shutil.copy(next((root / "boot").glob(f"{part}-*")), folder / part)
        _make_disk(root, folder / "disk", "4G")
        shutil.rmtree(root)

    inputs = {"suite": suite, "packages": PACKAGES, "init": digest_file(init)}
    return session.cache.entry("debian", inputs, make)


def test_lintian(packages: Path) -> None:
    """No error and no warning, except that the maintainer's address is not reachable."""
    done = subprocess.run(
        [need("lintian", "lintian"), "--fail-on", "error,warning", "--allow-root",
         "--suppress-tags", "bogus-mail-host,bogus-mail-host-in-debian-changelog",
         next((ROOT / "build/deb").glob("*.changes"))],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("series", KERNELS)
def test_package(session: Session, packages: Path, series: str, tmp_path: Path) -> None:
    suite = SUITES[series]
    system = debian(session, suite)
    # One thread for both CPUs: with a thread each, QEMU 7.2 executes a breakpoint that is no longer
    # there, where a jump label is patched; counters patch one with each loop.
    with contextlib.suppress(subprocess.TimeoutExpired):  # what was done is in the results
        process.run(
            [need("qemu-system-x86_64", "qemu-system-x86"), "-nodefaults", "-display", "none",
             "-no-reboot", "-machine", "q35", "-accel", "tcg,thread=single", "-cpu", "max",
             "-smp", "2", "-m", "1536", "-kernel", system / "vmlinuz",
             "-initrd", system / "initrd.img",
             "-append", "console=ttyS0 root=/dev/vda rw init=/usr/local/sbin/init.sh panic=-1 quiet"
             " mitigations=off",
             "-serial", f"file:{tmp_path}/console", "-serial", f"file:{tmp_path}/results",
             "-drive", f"file={system}/disk,format=raw,if=virtio,snapshot=on,cache=unsafe",
             "-drive", f"file={packages},format=raw,if=virtio,readonly=on"],
            output=tmp_path / "qemu", timeout=60 * _MINUTES,
        )  # fmt: skip
    results = (tmp_path / "results").read_text(errors="replace").replace("\r", "")
    console = (tmp_path / "console").read_text(errors="replace")
    assert re.search(rf"^1\.\.{len(re.findall(r'^ok ', results, re.MULTILINE))}$", results,
                     re.MULTILINE), f"{console[-5000:]}\n{results}"  # fmt: skip
