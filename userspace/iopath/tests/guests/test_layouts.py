# SPDX-License-Identifier: GPL-2.0
"""One kernel has the same figures as packages of several layouts, as an installation, as an image
alone and as a tree."""

import json
import subprocess
from pathlib import Path

import pytest

from helpers.command import Command
from helpers.linux_source import BUILD_SETTINGS, MINIMAL, LinuxSource
from iopath.kernels import installation
from iopath.kernels.sources import installed
from iopath.measure.session import Session

pytestmark = [pytest.mark.guest, pytest.mark.long]

SPEC = """\
Name: {name}
Version: 1
Release: 1
Summary: a kernel's part
License: GPL-2.0
AutoReqProv: no
%global __os_install_post %{{nil}}
%global debug_package %{{nil}}
%description
%install
cp -a {files}/. %{{buildroot}}
%files
/*
"""

CONTROL = """\
Package: {name}
Version: 1
Architecture: amd64
Maintainer: Nobody <nobody@example.org>
Description: a kernel's part
"""


@pytest.fixture(scope="module")
def tree(session: Session) -> Path:
    return LinuxSource(session).tree(MINIMAL)


@pytest.fixture(scope="module")
def headers(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the kernel's own packaging has for building modules."""
    folder = tmp_path_factory.mktemp("headers")
    copy = folder / "linux"
    subprocess.run(["cp", "-a", tree, copy], check=True)
    script = f"$(srctree)/scripts/package/install-extmod-build {folder}/devel"
    subprocess.run(
        ["make", "-s", "LOCALVERSION=", "run-command", f"KBUILD_RUN_COMMAND={script}"],
        cwd=copy, check=True,
    )  # fmt: skip
    subprocess.run(["cp", tree / ".config", folder / "devel/.config"], check=True)
    return folder / "devel"


def lay_out(folder: Path, files: dict[str, Path], links: dict[str, str]) -> Path:
    for name, path in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", path, target], check=True)
    for name, link in links.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(link)
    return folder


def ubuntu(tree: Path, headers: Path, release: str, folder: Path) -> Path:
    """Image, modules and headers, each in a package."""
    image = tree / "arch/x86/boot/bzImage"
    source = f"usr/src/linux-headers-{release}"
    parts = {
        "image-unsigned": ({f"boot/vmlinuz-{release}": image}, {}),
        "modules": (
            {f"boot/config-{release}": tree / ".config",
             f"lib/modules/{release}/modules.builtin": tree / "modules.builtin"},
            {},
        ),
        "headers": ({source: headers}, {f"lib/modules/{release}/build": f"/{source}"}),
    }  # fmt: skip
    for part, (files, links) in parts.items():
        name = f"linux-{part}-{release}"
        built = lay_out(folder / name, files, links)
        (built / "DEBIAN").mkdir()
        (built / "DEBIAN/control").write_text(CONTROL.format(name=name))
        subprocess.run(
            ["dpkg-deb", "-Zxz", "-z0", "--root-owner-group", "-b", built,
             folder / f"{name}_1_amd64.deb"],
            check=True, capture_output=True,
        )  # fmt: skip
    return folder


def fedora(tree: Path, headers: Path, release: str, folder: Path) -> Path:
    """kernel-core and kernel-devel."""
    base = f"lib/modules/{release}"
    source = f"usr/src/kernels/{release}"
    parts = {
        "kernel-core": (
            {f"{base}/vmlinuz": tree / "arch/x86/boot/bzImage", f"{base}/config": tree / ".config",
             f"{base}/modules.builtin": tree / "modules.builtin"},
            {},
        ),
        "kernel-devel": ({source: headers}, {f"{base}/build": f"/{source}"}),
    }  # fmt: skip
    for name, (files, links) in parts.items():
        laid = lay_out(folder / "files" / name, files, links)
        spec = folder / f"{name}.spec"
        spec.write_text(SPEC.format(name=name, files=laid))
        subprocess.run(
            ["rpmbuild", "-bb", "--target", "x86_64", "--define", f"_topdir {folder}/top",
             "--define", f"_rpmdir {folder}", spec],
            check=True, capture_output=True,
        )  # fmt: skip
    return folder / "x86_64"


Figures = dict[str, dict[str, float]]


def figures(path: Path) -> Figures:
    found: Figures = {}
    for record in json.loads(path.read_text())["results"]:
        of_kernel = found.setdefault(record["kernel"]["name"].partition(":")[0], {})
        of_kernel[f"{record['rung']} {record['op']}"] = record["instructions_per_io"]
    return found


def measured(session: Session, folder: Path, *kernels: str) -> tuple[Figures, str]:
    """The figures of *kernels*, and what the command noted. Those of a tree, of deb and of rpm are
    equal."""
    out = folder / "out.json"
    done = Command(session.cache.root, folder).run(
        "measure", *kernels, "--rung", "syscall", "--rung", "dio.pread", "--boots", "1",
        "--json", out, timeout=3600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = figures(out)
    assert set(found["tree"]) == {"syscall none", "dio.pread read", "dio.pread write"}
    assert found["deb"] == found["rpm"] == found["tree"]
    return found, done.stderr


def test_one_kernel_in_five_ways(
    session: Session, tree: Path, headers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = (tree / "include/config/kernel.release").read_text().strip()
    debs = ubuntu(tree, headers, release, tmp_path / "debs")
    rpms = fedora(tree, headers, release, tmp_path / "rpms")
    found, notes = measured(
        session, tmp_path, f"tree:{tree}", f"deb:{debs}", f"rpm:{rpms}",
        f"image:{tree}/arch/x86/boot/bzImage",
    )  # fmt: skip
    assert found["image"] == {"syscall none": found["tree"]["syscall none"]}
    assert "left out: dio.pread: the kernel has no module blknull" in notes

    # As the packages are installed: the same image, and modules for it.
    root = tmp_path / "root"
    for part in (tmp_path / "debs").glob(f"linux-*-{release}"):
        subprocess.run(["cp", "-a", f"{part}/.", root], check=True)
    monkeypatch.setattr(installed, "ROOT", root)
    assert installation.releases(root) == [release]
    here = session.build(session.find(f"installed:{release}"), lambda what, part: None)
    other = session.build(session.find(f"tree:{tree}"), lambda what, part: None)
    assert here.digests["vmlinuz"] == other.digests["vmlinuz"]
    assert set(here.modules) == set(other.modules)
    assert here.release == release


def test_packages_of_the_kernels_makefile(session: Session, tree: Path, tmp_path: Path) -> None:
    """What make bindeb-pkg and make binrpm-pkg write, packages of headers for programs included."""
    copy = tmp_path / "linux"
    subprocess.run(["cp", "-a", tree, copy], check=True)
    for target, flags in (("bindeb-pkg", "DPKG_FLAGS=-d"), ("binrpm-pkg", "RPMOPTS=--nodeps")):
        subprocess.run(
            ["sh", "-ec", f"make -s -j$(nproc) {BUILD_SETTINGS} {flags} {target}"],
            cwd=copy, check=True, capture_output=True,
        )  # fmt: skip
    measured(
        session, tmp_path, f"tree:{tree}", f"deb:{tmp_path}", f"rpm:{copy}/rpmbuild/RPMS/x86_64"
    )


def test_errors(session: Session, tree: Path, headers: Path, tmp_path: Path) -> None:
    """A missing or damaged part is an error in one line."""
    release = (tree / "include/config/kernel.release").read_text().strip()
    debs = ubuntu(tree, headers, release, tmp_path / "debs")
    rpms = fedora(tree, headers, release, tmp_path / "rpms")
    (whole,) = rpms.glob("kernel-core-*.rpm")
    short = tmp_path / "short-1.x86_64.rpm"
    short.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    (image,) = debs.glob("linux-image-*.deb")
    (modules,) = debs.glob("linux-modules-*.deb")
    command = Command(session.cache.root, tmp_path)
    for name, text in (
        (f"rpm:{short}", "cannot unpack short-1.x86_64.rpm: "),
        (f"deb:{image},{modules}", f"no headers of {release}: name the package with them, too"),
        (f"deb:{modules}", "no kernel is in linux-modules-"),
    ):
        done = command.run("measure", name, "--rung", "dio.pread", "--boots", "1", timeout=600)
        assert done.returncode in (1, 2), name
        assert text in done.stderr.splitlines()[-1], done.stderr
        assert "Traceback" not in done.stderr
