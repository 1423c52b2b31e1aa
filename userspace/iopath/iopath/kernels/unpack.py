# SPDX-License-Identifier: GPL-2.0
"""Unpack packages of Debian and of RPM's distributions. None of their scripts is run."""

import os
import subprocess
from pathlib import Path

from iopath.base import process
from iopath.base.errors import IopathError

_TAR_FAILED = 2  # its exit status, also where a pattern matched nothing


def _as_tar(package: Path) -> list[str | Path]:
    """The command that prints the files of a package as a tar archive."""
    if package.suffix == ".rpm":
        bsdtar = process.need("bsdtar", "libarchive-tools")
        return [bsdtar, "-c", "-f", "-", "--format=gnutar", f"@{package}"]
    return [process.need("dpkg-deb", "dpkg"), "--fsys-tarfile", package]


def new_root(folder: Path) -> None:
    """Make a root file system for packages: /bin and the like are links into /usr, as every suite
    of today expects."""
    for name in ("bin", "lib", "lib64", "sbin"):
        (folder / "usr" / name).mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(f"usr/{name}")


def unpack(deb: Path, folder: Path, *, only: list[str] | None = None) -> None:
    """Unpack a package below *folder*, without owners: everything but documentation, or the files
    that match *only*."""
    folder.mkdir(parents=True, exist_ok=True)
    select = (
        ["--wildcards", *only]
        if only
        else [
            *(f"--exclude=./usr/share/{part}/*" for part in ("doc", "locale", "man", "info")),
            "--exclude=./boot/*",
            "--exclude=*/modules/*/kernel",
            "--keep-directory-symlink",
        ]
    )
    plain = {**os.environ, "LC_ALL": "C"}
    with subprocess.Popen(
        _as_tar(deb), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=plain
    ) as source:
        tar = subprocess.run(
            [process.need("tar", "tar"), "-x", "--no-same-owner", "-C", folder, *select],
            stdin=source.stdout,
            capture_output=True,
            text=True,
            check=False,
            env=plain,
        )
        if source.stdout:
            source.stdout.close()  # or dpkg-deb would wait for this program if tar died
        errors = (source.stderr.read() if source.stderr else b"").decode(errors="replace")
    complaints = [line for line in tar.stderr.splitlines() if "Not found in archive" not in line]
    unmatched = len(complaints) < len(tar.stderr.splitlines())
    complaints = [line for line in complaints if "Exiting with failure status" not in line]
    if complaints:
        raise IopathError(f"cannot unpack {deb.name}: {complaints[0]}")
    # It is not a failure if a pattern matched nothing; tar then ends with a status of its own.
    if tar.returncode and not (tar.returncode == _TAR_FAILED and unmatched):
        raise IopathError(f"cannot unpack {deb.name}: tar ended with status {tar.returncode}")
    if source.returncode and not (only and "Broken pipe" in errors):
        raise IopathError(f"cannot unpack {deb.name}: {errors.strip().splitlines()[-1]}")
