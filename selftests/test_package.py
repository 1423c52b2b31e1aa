# SPDX-License-Identifier: GPL-2.0
"""The Debian packages as users have them: installed, used and removed in a guest that is a whole
Debian, of the release whose kernel it runs. In an arm64 guest, the loops' tests run, too."""

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_docs import commands

from iopath.base import process
from iopath.base.arch import AARCH64, ARCHES, RISCV64, X86_64, Arch, this_machine
from iopath.base.cache import digest_file
from iopath.base.process import need
from iopath.base.sources import source_root
from iopath.kernels.apt import find_mirrors
from iopath.measure.session import Session

ROOT = source_root()
SYSTEMS = {
    "6.1": ("bookworm", X86_64), "6.12": ("trixie", X86_64), "6.12-arm64": ("trixie", AARCH64),
}  # fmt: skip
KERNELS = os.environ.get("KERNEL", "6.1 6.12").replace("debian:", "").split()
PACKAGES = (
    "dkms", "kmod", "udev", "procps", "initramfs-tools", "linux-perf", "python3-cattr",
    "python3-debian", "python3-jinja2", "python3-jsonschema", "python3-matplotlib", "python3-rich",
)  # fmt: skip
# Further packages that the loops' tests need.
LOOPS = ("e2fsprogs", "fio", "gcc", "libc6-dbg", "libc6-dev", "mount", "strace", "valgrind")
# The machine of a guest, with the ports of its console and of the results.
MACHINES = {
    # One thread for both CPUs: with a thread each, QEMU 7.2 executes a breakpoint that is no longer
    # there, where a jump label is patched; counters patch one with each loop.
    X86_64: ("-machine", "q35", "-accel", "tcg,thread=single", "-cpu", "max",
             "-serial", "chardev:console", "-serial", "chardev:results"),
    AARCH64: ("-machine", "virt,gic-version=3", "-accel", "tcg", "-cpu", "neoverse-n1",
              "-serial", "chardev:console", "-chardev", "null,id=none",
              "-device", "pci-serial-2x,chardev1=none,chardev2=results"),
}  # fmt: skip
CONSOLES = {X86_64: "ttyS0", AARCH64: "ttyAMA0"}
BINFMT = Path("/proc/sys/fs/binfmt_misc")
# Compiling Python's libraries takes qemu-user a quarter of an hour. They work uncompiled.
UNCOMPILED = (
    '--essential-hook=chroot "$1" dpkg-divert --quiet --local --rename /usr/bin/py3compile'
    ' && ln -s true "$1"/usr/bin/py3compile',
    '--customize-hook=rm "$1"/usr/bin/py3compile'
    ' && chroot "$1" dpkg-divert --quiet --rename --remove /usr/bin/py3compile',
)
_MINUTES = 120


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[Arch, Path]:
    """Folders with what dpkg-buildpackage makes for each architecture."""
    folders = {}
    for arch in MACHINES:
        make = ["make", "-s", "deb", f"DEB_HOST_ARCH={arch.debian}"]
        for command in (["userspace/setup.sh", "package"], make):
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
        folders[arch] = tmp_path_factory.mktemp(arch.debian)
        for path in filter(Path.is_file, (ROOT / "build/deb").iterdir()):
            shutil.copy(path, folders[arch])
    return folders


def disk(built: Path, folder: Path, arch: Arch) -> Path:
    """A disk with the packages and the test."""
    folder.mkdir()
    for pattern in ("iopath*.deb", "iopath_*.tar.xz"):
        for path in built.glob(pattern):
            shutil.copy(path, folder)
    shutil.copy(ROOT / "selftests/package/user.sh", folder)
    if arch == this_machine():
        bundle = ["measure", "host", "--rung=dio.pread", "--passes=6", "--bundle"]
        subprocess.run([ROOT / "build/bin/iopath", *bundle, folder / "iopath-host.sh"], check=True)
    lines = [*commands(ROOT / "Documentation/host.rst"), *commands(ROOT / "README.md")]
    # Other targets run guests, which the other tests boot; user.sh does what make does.
    ours = r"perf |build/bin/ioloop |.* host |.* compare before.json |sh iopath-host"
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


@contextlib.contextmanager
def programs_of(arch: Arch) -> Iterator[None]:
    """Have this machine run programs of another architecture, if it does not yet."""
    name = f"qemu-{arch.name}"
    if arch == this_machine() or (BINFMT / name).exists():
        yield
        return
    need(f"{name}-static", "qemu-user-static")
    if not (BINFMT / "register").exists():
        subprocess.run(["mount", "-t", "binfmt_misc", "binfmt_misc", BINFMT], check=True)
    (BINFMT / "register").write_bytes(Path(f"/usr/lib/binfmt.d/{name}.conf").read_bytes())
    try:
        yield
    finally:
        (BINFMT / name).write_text("-1")


def debian(session: Session, suite: str, arch: Arch) -> Path:
    """A folder with a Debian on a disk, its kernel and initrd."""
    init = ROOT / "selftests/package/init.sh"
    foreign = arch != this_machine()
    kernel = (f"linux-image-{arch.debian}", f"linux-headers-{arch.debian}")
    packages = [*kernel, *PACKAGES, *(LOOPS if foreign else ())]

    def make(folder: Path) -> None:
        main, security = find_mirrors()
        root = folder / "root"
        with programs_of(arch):
            status = process.run(
                [need("mmdebstrap", "mmdebstrap"), "--variant=minbase", f"--arch={arch.debian}",
                 f"--include={','.join(packages)}", *(UNCOMPILED if foreign else ()),
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

    inputs = {"suite": suite, "packages": packages, "init": digest_file(init)}
    return session.cache.entry("debian", inputs, make)


@pytest.mark.parametrize("arch", MACHINES, ids=lambda arch: arch.debian)
def test_lintian(built: dict[Arch, Path], arch: Arch) -> None:
    """No error and no warning, except that the maintainer's address is not reachable."""
    done = subprocess.run(
        [need("lintian", "lintian"), "--fail-on", "error,warning", "--allow-root",
         "--suppress-tags", "bogus-mail-host,bogus-mail-host-in-debian-changelog",
         next(built[arch].glob("*.changes"))],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("arch", MACHINES, ids=lambda arch: arch.debian)
def test_programs_of_guests(built: dict[Arch, Path], arch: Arch, tmp_path: Path) -> None:
    """Each package has the programs of its own architecture, and that of x86-64, whose machines
    run guests, has those for guests of all others, and the plugin."""
    deb = next(built[arch].glob(f"iopath_*_{arch.debian}.deb"))
    subprocess.run(["dpkg-deb", "-x", deb, tmp_path], check=True)
    guest = "usr/lib/iopath/iopath/source/build/guest"
    guests = ARCHES if arch == X86_64 else [arch]
    names = ("init", "ioloop", "runner")
    wanted = {f"{guest}/{of.name}/{name}": of for of in guests for name in names}
    wanted["usr/bin/ioloop"] = arch
    if arch == X86_64:
        wanted[f"{guest}/{arch.name}/pathcount.so"] = arch
    machines = {X86_64: 62, AARCH64: 183, RISCV64: 243}  # e_machine of ELF
    found = {
        str(path.relative_to(tmp_path)): int.from_bytes(head[18:20], "little")
        for path in tmp_path.rglob("*")
        if path.is_file() and (head := path.read_bytes()[:20]).startswith(b"\x7fELF")
    }
    assert found == {name: machines[of] for name, of in wanted.items()}
    for name in found.keys() - {"usr/bin/ioloop"}:
        made = ROOT / "build/guest" / Path(name).relative_to(guest)
        assert digest_file(tmp_path / name) == digest_file(made), f"{name} was changed"


@pytest.mark.parametrize("series", KERNELS)
def test_package(session: Session, built: dict[Arch, Path], series: str, tmp_path: Path) -> None:
    suite, arch = SYSTEMS[series]
    system = debian(session, suite, arch)
    packages = disk(built[arch], tmp_path / "packages", arch)
    with contextlib.suppress(subprocess.TimeoutExpired):  # the results show what was done
        process.run(
            [need(arch.qemu, arch.qemu_package), "-nodefaults", "-display", "none", "-no-reboot",
             "-chardev", f"file,id=console,path={tmp_path}/console",
             "-chardev", f"file,id=results,path={tmp_path}/results", *MACHINES[arch],
             "-smp", "2", "-m", "1536", "-kernel", system / "vmlinuz",
             "-initrd", system / "initrd.img",
             "-append", f"console={CONSOLES[arch]} root=/dev/vda rw init=/usr/local/sbin/init.sh"
             " panic=-1 quiet mitigations=off",
             "-drive", f"file={system}/disk,format=raw,if=virtio,snapshot=on,cache=unsafe",
             "-drive", f"file={packages},format=raw,if=virtio,readonly=on"],
            output=tmp_path / "qemu", timeout=60 * _MINUTES,
        )  # fmt: skip
    results = (tmp_path / "results").read_text(errors="replace").replace("\r", "")
    console = (tmp_path / "console").read_text(errors="replace")
    assert re.search(rf"^1\.\.{len(re.findall(r'^ok ', results, re.MULTILINE))}$", results,
                     re.MULTILINE), f"{console[-5000:]}\n{results}"  # fmt: skip
