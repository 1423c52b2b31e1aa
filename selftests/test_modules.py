# SPDX-License-Identifier: GPL-2.0
"""The modules build for every supported kernel without a warning, also of sparse."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from cases import cases

from iopath.base.process import need
from iopath.base.sources import module_sources, source_root
from iopath.kernels.sources.debian import DebianKernel, headers_root
from iopath.measure.session import Session

KERNELS = os.environ.get("KERNEL", "5.10 6.1 6.12 7.2 7.3").replace("debian:", "").split()
MODULES = {path.parent.name for path in (source_root() / "kernel").glob("*/Kbuild")}


# Debian 12's sparse, 0.6.4, cannot read the headers of newer ones: __typeof_unqual__, and the
# assertion in MODULE_INFO.
SPARSE = [series for series in KERNELS if series in ("5.10", "6.1", "6.12")] or ["6.12"]


def quiet(what: str, part: float) -> None:
    pass


@pytest.mark.parametrize("series", KERNELS)
def test_build(session: Session, series: str) -> None:
    """There is no warning with W=1."""
    built = session.find(f"debian:{series}").prepare(session.cache, session.apt, quiet)
    assert built.warnings == []
    assert built.modules.keys() == MODULES


@pytest.mark.parametrize("series", KERNELS)
def test_32_bit(session: Session, series: str) -> None:
    """A 32-bit kernel is refused in one line, by the compiler, and DKMS leaves it out."""
    kernel = session.find(f"debian:{series}")
    assert isinstance(kernel, DebianKernel)
    root = headers_root(kernel, session.cache, session.apt, quiet)
    headers = root / f"usr/src/linux-headers-{kernel.release}/include/generated/uapi"
    assert (headers / "linux/version.h").exists()
    for defined, errors in (
        ([], ["iopath: this kernel is 32-bit, only 64-bit ones are supported"]),
        (["-DCONFIG_64BIT"], []),
    ):
        done = subprocess.run(
            [need("gcc", "gcc"), "-E", f"-I{headers}", *defined,
             source_root() / "kernel/compat/version.h"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert re.findall(r'error: #error "(.*)"', done.stderr) == errors, done.stderr
    assert 'BUILD_EXCLUSIVE_CONFIG="CONFIG_64BIT"' in (source_root() / "dkms.conf").read_text()


@pytest.mark.parametrize("series", cases(SPARSE, quick=SPARSE[-1:]))
def test_sparse(session: Session, series: str, tmp_path: Path) -> None:
    """sparse runs in the kernel's build root, with this machine's program."""
    kernel = session.find(f"debian:{series}")
    assert isinstance(kernel, DebianKernel)
    root = headers_root(kernel, session.cache, session.apt, quiet)
    for path in module_sources():
        target = tmp_path / path.relative_to(source_root())
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    # A fault that sparse must find, which shows that it has run.
    with (tmp_path / "kernel/blknull/main.c").open("a") as source:
        source.write("int iopath_planted;\n")
    done = subprocess.run(
        [need("bwrap", "bubblewrap"), "--ro-bind", root, "/", "--proc", "/proc", "--dev", "/dev",
         "--tmpfs", "/tmp", "--ro-bind", "/", "/tmp/host", "--bind", tmp_path, "/src",
         "--chdir", "/src", "--unshare-all", "--die-with-parent", "--setenv", "LC_ALL", "C",
         "make", "-C", f"/usr/src/linux-headers-{kernel.release}", "M=/src",
         # Debian's headers lack the script that C= runs first.
         "KBUILD_CHECKSRC=2", f"CHECK={_on_host(need('sparse', 'sparse'))}", "modules"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    found = set(re.findall(r"^/?(?:src/)?(.*?:) (?:warning|error): (.*)$", said, re.MULTILINE))
    planted = {text for _, text in found if "iopath_planted" in text}
    assert planted == {"symbol 'iopath_planted' was not declared. Should it be static?"}, said
    assert {(at, text) for at, text in found if text not in planted} == set()


def _on_host(program: str) -> str:
    """A program of this machine, which is at /tmp/host, with its own C library."""
    loader = Path("/lib64/ld-linux-x86-64.so.2").resolve()
    libraries = f"/tmp/host{loader.parent}"
    return f"/tmp/host{loader} --library-path {libraries} /tmp/host{Path(program).resolve()}"
