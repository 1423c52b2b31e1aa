# SPDX-License-Identifier: GPL-2.0
"""What the tests use of the kernel's own source, as Debian packages it. Everything is cached."""

import subprocess
from pathlib import Path

from debian.debian_support import Version

from iopath.base import process
from iopath.base.arch import X86_64, Arch
from iopath.base.cache import digest_file
from iopath.base.errors import IopathError
from iopath.base.programs import cross_compiler
from iopath.base.sources import copy_sources, source_digest, source_root
from iopath.kernels.apt import UNRELEASED
from iopath.kernels.kbuild import make_words
from iopath.kernels.recipe import MINIMAL_CONFIG, minimal_configs
from iopath.kernels.sources.tree import Tree
from iopath.measure.session import Session

FRAGMENTS = source_root() / "selftests/config"
MINIMAL = MINIMAL_CONFIG.name


def left_out(arch: Arch = X86_64) -> tuple[str, ...]:
    """The files that are not unpacked: most of a kernel's source is not for a guest."""
    power = ("power",) if arch == X86_64 else ()  # each arm64 kernel has power supplies
    return (
        "*/Documentation/*/*", f"*/arch/[!{arch.source[0]}]*/*.[chS]", "*/boot/dts/*",
        "*/sound/*.[ch]", "*/tools/perf/*", "*/tools/testing/*",
        *(f"*/drivers/{name}/*.[ch]" for name in (
            "accel", "gpu", "hwmon", "iio", "infiniband", "input", "media", "mtd", "net", "pinctrl",
            *power, "scsi", "soc", "staging", "usb", "video/fbdev",
        )),
    )  # fmt: skip


def make_command(arch: Arch) -> str:
    """The beginning of a command that runs make of a kernel."""
    return " ".join(["make", "-s", *make_words(arch)])


# With these, the same inputs make the same kernel to the last bit.
BUILD_SETTINGS = (
    "LOCALVERSION= KBUILD_BUILD_TIMESTAMP=2026-01-01 KBUILD_BUILD_HOST=iopath"
    " KBUILD_BUILD_USER=iopath KBUILD_BUILD_VERSION=1"
)


def build_command(arch: Arch = X86_64) -> str:
    """The command that builds a kernel."""
    return f"{make_command(arch)} -j$(nproc) {BUILD_SETTINGS} {arch.target} modules"


INSTRUMENTED = ("GCOV_PROFILE=y", "KCOV_INSTRUMENT=y")


def compiler(arch: Arch = X86_64) -> str:
    """Its name and version."""
    command = [cross_compiler(arch).name, "--version"]
    return subprocess.check_output(command, text=True).splitlines()[0]


class LinuxSource:
    """The newest released package with the source of a series of Linux."""

    def __init__(self, session: Session, series: str = "6.12") -> None:
        self._session = session
        self.name = f"linux-source-{series}"
        self._package = max(
            (
                package
                for package in session.apt.packages()
                if package.name == self.name and package.suite not in UNRELEASED
            ),
            key=lambda package: Version(package.version),
        )
        self.wanted = f"{self.name}={self._package.version}"

    def unpack(self, folder: Path, *select: str) -> None:
        """Unpack the source, or the part that the options *select* of tar leave, into *folder*."""
        apt = self._session.apt
        apt.download([self.wanted], self._package.suite, closure=False, progress=lambda part: None)
        deb = apt.deb(f"{self.name}_{self._package.version}_all.deb")
        subprocess.run(
            ["bash", "-o", "pipefail", "-c",
             'dpkg-deb --fsys-tarfile "$1" | tar -xO "./usr/src/$2.tar.xz" |'
             ' tar -xJ -C "$3" --strip-components=1 "${@:4}"',
             "bash", deb, self.name, folder, *select],
            check=True,
        )  # fmt: skip

    def _tools(self) -> Path:
        """The files of the source that are not for building a kernel."""
        files = [
            f"{self.name}/{file}"
            for file in (
                *(f"tools/testing/selftests/{file}" for file in (
                    "Makefile", "kselftest", "kselftest.h", "kselftest_deps.sh",
                    "kselftest_harness.h", "lib.mk", "run_kselftest.sh",
                )),
                *(f"scripts/{file}" for file in (
                    "subarch.include", "checkpatch.pl", "const_structs.checkpatch", "spelling.txt",
                    "extract-vmlinux",
                )),
            )
        ]  # fmt: skip

        def make(folder: Path) -> None:
            self.unpack(folder, *files)

        return self._session.cache.entry("tools", {"package": self.wanted, "files": files}, make)

    def kselftest(self) -> Path:
        """The folder with the files that kernel selftests need to be built and installed."""
        return self._tools() / "tools/testing/selftests"

    def checkpatch(self) -> Path:
        """The kernel's own style checker."""
        return self._tools() / "scripts/checkpatch.pl"

    def unpacked(self, image: Path) -> Path:
        """The kernel in a bzImage: in an emulator, a kernel takes longer to unpack itself than to
        start. It enters with page tables of four levels."""

        def make(folder: Path) -> None:
            script = self._tools() / "scripts/extract-vmlinux"
            with (folder / "vmlinux").open("wb") as file:
                subprocess.run([script, image], stdout=file, check=True)

        return (
            self._session.cache.entry("unpacked", {"image": digest_file(image)}, make) / "vmlinux"
        )

    def tree(self, *fragments: str, arch: Arch = X86_64) -> Path:
        """A kernel, built with the *fragments* merged over tinyconfig: iopath's minimal.config, and
        files of selftests/config."""
        paths = [
            path
            for fragment in fragments
            for path in (minimal_configs(arch) if fragment == MINIMAL else [FRAGMENTS / fragment])
        ]
        excluded, make_it = left_out(arch), build_command(arch)
        inputs = {
            "package": self.wanted,
            "left_out": excluded,
            "fragments": [digest_file(path) for path in paths],
            "compiler": compiler(arch),
            "build": make_it,
        }

        def make(folder: Path) -> None:
            linux, log = folder / "linux", folder / "log"
            linux.mkdir()
            self.unpack(linux, *(f"--exclude={pattern}" for pattern in excluded))
            make_ = make_command(arch)
            command = (
                f"{make_} tinyconfig && scripts/kconfig/merge_config.sh -m .config"
                f" {' '.join(map(str, paths))} && {make_} olddefconfig && {make_it}"
            )
            if process.run(["sh", "-ec", command], output=log, cwd=linux):
                raise IopathError(f"no kernel: {log.read_text(errors='replace')[-2000:]}")

        return self._session.cache.entry("tree", inputs, make) / "linux"

    def modules(self, tree: Path) -> Path:
        """The project's modules for *tree*, built so that gcov and KCOV, if the kernel has them,
        see which of their code is reached. The folder also holds what gcov needs."""
        inputs = {
            "tree": digest_file(Tree(tree).image),
            "source": source_digest(),
            "variables": INSTRUMENTED,
        }

        def make(folder: Path) -> None:
            copy_sources(folder / "src")
            words = [*make_words(Tree(tree).arch), f"M={folder}/src", *INSTRUMENTED]
            command = ["make", "-j2", "-C", tree, *words, "modules"]
            log = folder / "log"
            if process.run(command, output=log):
                raise IopathError(f"no modules: {log.read_text(errors='replace')[-2000:]}")

        return self._session.cache.entry("instrumented", inputs, make)
