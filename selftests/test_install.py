# SPDX-License-Identifier: GPL-2.0
"""Installations work without the sources: `make install`, a wheel, and DKMS's build."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from helpers.cases import cases
from iopath import __version__
from iopath.base.cache import cache_root
from iopath.base.process import need
from iopath.base.sources import module_sources, source_root
from iopath.cli import parser
from iopath.kernels.sources.debian import DebianKernel, headers_root
from iopath.measure.session import Session

ROOT = source_root()
KERNELS = os.environ.get("KERNEL", "5.10 6.1 6.12 7.2 7.3").replace("debian:", "").split()
# Only Python's libraries are those of the tests.
OUTSIDE = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}


def run(*command: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def dkms() -> dict[str, str]:
    """The settings of dkms.conf, as a shell reads them."""
    text = (ROOT / "dkms.conf").read_text()
    return dict(re.findall(r'^([\w\[\]]+)="(.*)"$', text, re.MULTILINE))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `make install` and `make install-dkms` put everything."""
    folder = tmp_path_factory.mktemp("installed")
    for target in ("install", "install-dkms"):
        run("make", "-s", target, "PREFIX=/usr", f"DESTDIR={folder}")
    return folder


def test_one_version() -> None:
    with (ROOT / "userspace/iopath/pyproject.toml").open("rb") as file:
        assert tomllib.load(file)["project"]["version"] == __version__
    assert f"\nVERSION := {__version__}\n" in (ROOT / "Makefile").read_text()
    assert f"\nVERSION ?= {__version__}\n" in (ROOT / "userspace/ioloop/Makefile").read_text()
    assert dkms()["PACKAGE_VERSION"] == __version__
    assert (ROOT / "debian/changelog").read_text().startswith(f"iopath ({__version__}) ")
    assert re.search(r"^\d\S+$", (ROOT / "NEWS").read_text(), re.MULTILINE)[0] == __version__


def test_installed_programs(installed: Path, tmp_path: Path) -> None:
    programs = installed / "usr/bin"
    assert __version__ in run(programs / "ioloop", "--version", cwd=tmp_path, env=OUTSIDE)
    launch = (programs / "iopath").resolve()
    assert launch.is_relative_to(installed)
    said = run(sys.executable, launch, "--version", cwd=tmp_path, env=OUTSIDE)
    assert said == f"iopath {__version__}\n"
    said = run(
        sys.executable, "-c",
        "from iopath.base.programs import *; print(guest_program('pathcount.so'))",
        cwd=tmp_path, env=OUTSIDE | {"PYTHONPATH": str(launch.parent)},
    )  # fmt: skip
    assert Path(said.strip()).is_relative_to(installed)
    assert Path(said.strip()).is_file()
    words = ("measure", "host", "--rung", "syscall", "--bundle", "host.sh")
    run(sys.executable, launch, *words, cwd=tmp_path, env=OUTSIDE)
    assert (tmp_path / "host.sh").is_file()
    sources = launch.parent / "iopath/source/userspace"
    assert {path.name for path in (sources / "attach").iterdir()} == {"Makefile", "attach.c"}


def test_installed_pages(installed: Path) -> None:
    pages = {path.name for path in (installed / "usr/share/man").rglob("*.[1-9]")}
    assert pages == {path.name for path in (ROOT / "Documentation/man").iterdir()}
    assert {"ioloop.1", "iopath.1"} <= pages


def test_installed_configuration(installed: Path) -> None:
    """The file that kernels.rst builds a small kernel with is installed where it says."""
    name = "/usr/share/iopath/minimal.config"
    wanted = (ROOT / "userspace/iopath/iopath/kernels/minimal.config").read_bytes()
    assert (installed / name.removeprefix("/")).read_bytes() == wanted
    assert f"config={name}\n" in (ROOT / "Documentation/kernels.rst").read_text()


def test_installed_units(installed: Path, tmp_path: Path) -> None:
    """systemd finds nothing wrong in the units, and the command understands what they run."""
    units = installed / "usr/lib/systemd/user"
    text = (units / "iopath-track@.service").read_text()
    words = shlex.split(re.search(r"^ExecStart=(.*)$", text, re.MULTILINE)[1])
    assert words[0] == "iopath"
    args = parser.parser().parse_args(words[1:])
    assert (args.command, args.quiet) == ("track", True)
    (tmp_path / "iopath-track@x.service").write_text(text.replace("=iopath ", "=/bin/true "))
    shutil.copy(units / "iopath-track@.timer", tmp_path)
    done = subprocess.run(
        [need("systemd-analyze", "systemd"), "--user", "--man=no", "verify", *tmp_path.iterdir()],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_installed_sources_are_whole(installed: Path) -> None:
    """The same files as in the sources, in the programs' copy and in DKMS's."""
    wanted = {path.relative_to(ROOT) for path in module_sources()}
    copies = ("usr/lib/iopath/iopath/source", f"usr/src/iopath-{__version__}")
    for copy in copies:
        found = {p.relative_to(installed / copy) for p in (installed / copy).rglob("*")}
        files = {path for path in found if (installed / copy / path).is_file()}
        assert files - {Path("dkms.conf")} >= wanted
        assert not [path for path in files if path.suffix in (".ko", ".o", ".mod")]


def test_dkms_conf_names_every_module() -> None:
    settings = dkms()
    modules = sorted(path.parent.name for path in (ROOT / "kernel").glob("*/Kbuild"))
    named = {value for key, value in settings.items() if key.startswith("BUILT_MODULE_NAME")}
    assert named == set(modules)
    for key, name in settings.items():
        if key.startswith("BUILT_MODULE_NAME"):
            assert settings[key.replace("NAME", "LOCATION")] == f"kernel/{name}"


@pytest.mark.parametrize("series", cases(KERNELS, quick=(KERNELS[0], KERNELS[-1])))
def test_dkms_builds(session: Session, installed: Path, series: str, tmp_path: Path) -> None:
    """The command that dkms.conf gives makes every module, in the kernel's own build root."""
    kernel = session.find(f"debian:{series}")
    assert isinstance(kernel, DebianKernel)
    root = headers_root(kernel, session.cache, session.apt, lambda what, part: None)
    settings = dkms()
    name = f"iopath/{__version__}/build"
    shutil.copytree(installed / f"usr/src/iopath-{__version__}", tmp_path / name)
    places = {"$kernel_source_dir": f"/usr/src/linux-headers-{kernel.release}",
              "$dkms_tree": "/src", "$PACKAGE_NAME": "iopath",
              "$PACKAGE_VERSION": __version__}  # fmt: skip
    command = settings["MAKE[0]"]
    for variable, value in places.items():
        command = command.replace(variable, value)
    run(need("bwrap", "bubblewrap"), "--ro-bind", root, "/", "--proc", "/proc", "--dev", "/dev",
        "--tmpfs", "/tmp", "--bind", tmp_path, "/src", "--unshare-all", "--die-with-parent",
        "--clearenv", "--setenv", "PATH", "/usr/bin:/usr/sbin", "--setenv", "LC_ALL", "C",
        *shlex.split(command))  # fmt: skip
    for key, module in settings.items():
        if key.startswith("BUILT_MODULE_NAME"):
            location = settings[key.replace("NAME", "LOCATION")]
            assert (tmp_path / name / location / f"{module}.ko").is_file()


def test_wheel_has_the_sources(tmp_path: Path) -> None:
    """An installation by pipx builds the guest's programs itself."""
    run(sys.executable, "-m", "venv", "--system-site-packages", tmp_path / "venv")
    python = tmp_path / "venv/bin/python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
        ROOT / "userspace/iopath")  # fmt: skip
    said = run(
        python, "-c",
        "from iopath.base.programs import *; from iopath.kernels.guest_programs import main;"
        f"main(['{tmp_path}/built']); print(source_root(), guest_program('ioloop'))",
        cwd=tmp_path, env=OUTSIDE,
    )  # fmt: skip
    source, program = map(Path, said.split()[-2:])
    assert source.is_relative_to(tmp_path / "venv")
    assert program.is_relative_to(cache_root())
    assert __version__ in run(program, "--version", env=OUTSIDE)
