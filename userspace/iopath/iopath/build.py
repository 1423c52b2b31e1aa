# SPDX-License-Identifier: GPL-2.0
"""Get a kernel and build the project's modules for it, all of it cached."""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from iopath import process
from iopath.apt import Apt
from iopath.arch import X86_64, Arch
from iopath.cache import Cache, digest_file
from iopath.errors import IopathError
from iopath.kernels import DebianKernel, Tree
from iopath.programs import cross_compiler
from iopath.sources import copy_sources, source_digest

Step = Callable[[str, float], None]  # what is being done, and how much of it is (0 to 1)
Entry = tuple[str, dict[str, object]]  # the kind of a cache entry, and the inputs it is known by

# What a kernel's build system runs, besides the compiler that the headers depend on.
_TOOLS = (
    "bash", "binutils", "coreutils", "dash", "findutils", "gawk", "grep", "make", "perl",
    "python3", "sed",
)  # fmt: skip

# The parts of a kernel's own modules that a guest may need: folders, or modules that lie beside
# others. A list of those that are built in lies beside the modules.
_MODULES = (
    "block", "crypto", "drivers/block", "drivers/md", "fs/btrfs", "fs/configfs", "fs/exportfs",
    "fs/ext4", "fs/jbd2", "fs/mbcache", "fs/xfs", "lib",
)  # fmt: skip
BUILT_IN = "modules.builtin"


def module_parts(arch: Arch) -> tuple[str, ...]:
    """These parts of a kernel of an architecture."""
    return (*(f"arch/{arch.source}/{folder}" for folder in arch.modules), *_MODULES)


_ENDS = ("/*", ".ko*")  # of a part's files

_TAR_FAILED = 2  # its exit status, also where a pattern matched nothing

# Raised when an entry made by this file would come out different from the same inputs.
_RECIPE = 1


@dataclass(frozen=True)
class Built:
    """A kernel of architecture *arch* ready to boot, with the project's modules for it.

    *modules* are ours, by name; *own_modules* is the folder of the kernel's own (lib/modules/...).
    *digests* identify every file that takes part in a measurement. *warnings* are the compiler's.
    """

    release: str
    version: str
    origin: str
    vmlinuz: Path
    config: Path
    modules: dict[str, Path]
    own_modules: Path | None
    digests: dict[str, str]
    warnings: list[str]
    arch: Arch = X86_64


def build(kernel: DebianKernel | Tree, cache: Cache, apt: Apt, step: Step) -> Built:
    if isinstance(kernel, Tree):
        return _build_tree(kernel, cache, step)
    return _build_debian(kernel, cache, apt, step)


# Kernels from Debian's packages.


def image_entry(kernel: DebianKernel) -> Entry:
    """The cache entry of the image of *kernel*."""
    parts = module_parts(kernel.arch)
    return "image", {"packages": kernel.image, "modules": parts, "recipe": _RECIPE}


def entries(kernel: DebianKernel) -> tuple[Entry, Entry]:
    """The cache entries that a prepared kernel consists of: its image, and our modules."""
    built_for = {"release": kernel.release, "headers": kernel.headers, "suite": kernel.suite}
    return image_entry(kernel), modules_entry(built_for)


def _build_debian(kernel: DebianKernel, cache: Cache, apt: Apt, step: Step) -> Built:
    def make_image(folder: Path) -> None:
        own = apt.of(kernel.arch)
        own.download(
            kernel.image, kernel.suite, closure=False, progress=lambda p: step("downloading", p)
        )
        step("unpacking", 0)
        debs = [_deb_of(own, kernel, package) for package in kernel.image]
        unpacked = folder / "unpacked"
        patterns = ["./boot/vmlinuz*", "*/modules/*/vmlinuz*"]
        parts = module_parts(kernel.arch)
        patterns += [f"*/modules/*/kernel/{part}{end}" for part in parts for end in _ENDS]
        patterns.append(f"*/modules/*/{BUILT_IN}")
        for deb in debs:
            unpack(deb, unpacked, only=patterns)
        _keep_image(kernel.release, unpacked, folder)

    def make_modules(folder: Path) -> None:
        _build_in_root(folder, kernel, cache, apt, step)

    for_image, for_modules = entries(kernel)
    image = cache.entry(*for_image, make_image)
    modules = cache.entry(*for_modules, make_modules)
    return built(
        kernel.release, kernel.version, f"Debian {kernel.suite}", image, modules,
        modules / "config", kernel.arch,
    )  # fmt: skip


def _deb_of(apt: Apt, kernel: DebianKernel, package: str) -> Path:
    name, version = package.split("=", 1)
    return apt.deb(f"{name}_{version.replace(':', '%3a')}_{kernel.arch.debian}.deb")


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
        [process.need("dpkg-deb", "dpkg"), "--fsys-tarfile", deb],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=plain,
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
            source.stdout.close()  # or else dpkg-deb would wait for us where tar died
        errors = (source.stderr.read() if source.stderr else b"").decode(errors="replace")
    complaints = [line for line in tar.stderr.splitlines() if "Not found in archive" not in line]
    unmatched = len(complaints) < len(tar.stderr.splitlines())
    complaints = [line for line in complaints if "Exiting with failure status" not in line]
    if complaints:
        raise IopathError(f"cannot unpack {deb.name}: {complaints[0]}")
    # That a pattern matched nothing is no failure, and tar says so with a status of its own.
    if tar.returncode and not (tar.returncode == _TAR_FAILED and unmatched):
        raise IopathError(f"cannot unpack {deb.name}: tar ended with status {tar.returncode}")
    if source.returncode and not (only and "Broken pipe" in errors):
        raise IopathError(f"cannot unpack {deb.name}: {errors.strip().splitlines()[-1]}")


def _keep_image(release: str, unpacked: Path, folder: Path) -> None:
    """Keep the kernel and its modules, wherever this version's packages put them."""
    bases = (unpacked / "lib/modules", unpacked / "usr/lib/modules")
    base = next((path for path in bases if path.is_dir()), None)
    places = [unpacked / "boot" / f"vmlinuz-{release}"]
    if base:
        places += [base / release / name for name in ("vmlinuz", "vmlinuz.unsigned")]
    vmlinuz = next((place for place in places if place.is_file()), None)
    if vmlinuz is None:
        raise IopathError(f"the packages of {release} hold no vmlinuz")
    shutil.move(vmlinuz, folder / "vmlinuz")
    if base:
        (folder / "lib").mkdir()
        shutil.move(base, folder / "lib/modules")
    shutil.rmtree(unpacked)


def root(
    what: str, packages: Sequence[str], inputs: dict[str, object],
    suite: str, cache: Cache, apt: Apt, step: Step, others: Callable[[], list[Path]] = list,
) -> Path:  # fmt: skip
    """A root file system of a suite that holds *packages*, which are *what*, _TOOLS, and the
    packages that *others* fetches. The file "packages" in it lists all by their full names."""

    def make(folder: Path) -> None:
        wanted = [*packages, *_TOOLS]
        debs = apt.closure(wanted, suite)
        apt.download(wanted, suite, closure=True, progress=lambda p: step(f"downloading {what}", p))
        # Every suite of today expects /bin and the like to be links into /usr.
        for name in ("bin", "lib", "lib64", "sbin"):
            (folder / "usr" / name).mkdir(parents=True)
            (folder / name).symlink_to(f"usr/{name}")
        for number, deb in enumerate([*map(apt.deb, debs), *others()]):
            process.check_stopped()
            step(f"unpacking {what}", number / len(debs))
            unpack(deb, folder)
        # A package's own scripts, which did not run, would have made this link.
        (folder / "usr/bin/awk").symlink_to("gawk")
        for name in ("proc", "dev", "tmp", "src", "build", "ccache", "modules"):
            (folder / name).mkdir(exist_ok=True)
        (folder / "packages").write_text("".join(f"{deb}\n" for deb in debs))

    inputs = {**inputs, "suite": suite, "tools": _TOOLS, "recipe": _RECIPE}
    return cache.entry("root", inputs, make)


def sandbox(at: Path, *words: str | Path) -> list[str | Path]:
    """The beginning of a command that runs in the root file system *at*, which it cannot change,
    without a network; *words* are further options of bwrap."""
    return [
        process.need("bwrap", "bubblewrap"),
        "--ro-bind", at, "/",
        "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", *words,
        "--unshare-all", "--die-with-parent", "--clearenv",
        "--setenv", "PATH", "/usr/bin:/usr/sbin", "--setenv", "LC_ALL", "C",
        "--setenv", "KBUILD_BUILD_USER", "iopath", "--setenv", "KBUILD_BUILD_HOST", "iopath",
    ]  # fmt: skip


def headers_root(kernel: DebianKernel, cache: Cache, apt: Apt, step: Step) -> Path:
    """A root file system that holds the kernel's headers and the compiler they ask for. For a
    kernel of another architecture that is a compiler that runs on this machine. The headers' own
    dependencies would ask for one that does not."""
    what, wanted = "headers and compiler", {"headers": kernel.headers}
    if kernel.arch == X86_64:
        return root(what, [kernel.headers], wanted, kernel.suite, cache, apt, step)
    compiler = re.search(r"\bgcc-\d+", kernel.depends)
    kbuild = re.search(r"\blinux-kbuild-[^ ,]+", kernel.depends)
    common = re.search(r"\b(linux-headers-\S+-common\S*) \(= ([^)]+)\)", kernel.depends)
    if not (compiler and kbuild and common):
        raise IopathError(f"{kernel.headers} depends on no compiler, build tools or other headers")
    needed = [f"{compiler.group()}-{kernel.arch.triplet}", kbuild.group()]
    headers = [kernel.headers, "=".join(common.groups())]

    def fetch() -> list[Path]:
        own = apt.of(kernel.arch)
        own.download(
            headers, kernel.suite, closure=False, progress=lambda p: step("downloading headers", p)
        )
        return [
            _deb_of(own, kernel, headers[0]),
            own.deb(f"{headers[1].replace('=', '_')}_all.deb"),
        ]

    return root(what, needed, wanted, kernel.suite, cache, apt, step, fetch)


def _cross(kernel: DebianKernel) -> list[str]:
    """What make is told where the headers are not of this machine's architecture."""
    if kernel.arch == X86_64:
        return []
    host = f"DEB_HOST_ARCH={kernel.arch.debian}"
    return [f"DEB_BUILD_ARCH={X86_64.debian}", host, f"DEB_HOST_GNU_TYPE={kernel.arch.triplet}"]


def _build_in_root(folder: Path, kernel: DebianKernel, cache: Cache, apt: Apt, step: Step) -> None:
    at = headers_root(kernel, cache, apt, step)
    headers = next((at / "usr/src").glob(f"linux-headers-{kernel.release}"), None)
    if headers is None:
        raise IopathError(f"{kernel.headers} has no /usr/src/linux-headers-{kernel.release}")
    command = [*sandbox(at, "--bind", folder / "src", "/src", "--chdir", "/src"), "make"]
    step("building modules", 0.5)
    command += [*_cross(kernel), "-C", f"/{headers.relative_to(at)}"]
    make_modules(folder, command, "/src", kernel.release)
    shutil.copyfile(headers / ".config", folder / "config")


def debug_info(
    kernel: DebianKernel | Tree, built: Built, cache: Cache, apt: Apt, step: Step
) -> Path:
    """The kernel that was *built* and measured as an ELF file with its debug information."""
    if isinstance(kernel, Tree):
        if digest_file(kernel.image) != built.digests["vmlinuz"]:
            raise IopathError(f"tree:{kernel.path} has changed meanwhile: measure it again")
        return kernel.path / "vmlinux"

    def make(folder: Path) -> None:
        own = apt.of(kernel.arch)
        own.download(
            (kernel.debug,),
            kernel.suite,
            closure=False,
            progress=lambda p: step("downloading debug information", p),
        )
        step("unpacking debug information", 0.5)
        deb = _deb_of(own, kernel, kernel.debug)
        unpack(deb, folder / "unpacked", only=["*/vmlinux*"])
        found = [
            path
            for path in (folder / "unpacked").rglob("vmlinux*")
            if path.is_file() and not path.is_symlink()
        ]
        if not found:
            raise IopathError(f"{deb.name} holds no vmlinux")
        shutil.move(found[0], folder / "vmlinux")
        shutil.rmtree(folder / "unpacked")
        deb.unlink()  # it is of no further use, and large

    return cache.entry("debug", {"package": kernel.debug, "recipe": _RECIPE}, make) / "vmlinux"


# Kernels from a source tree.


def _kept(tree: Tree) -> dict[str, str]:
    """Where a tree's image and configuration are in its cache entry."""
    return {tree.arch.image: "vmlinuz", ".config": "config"}


def _build_tree(tree: Tree, cache: Cache, step: Step) -> Built:
    step("reading the tree", 0.0)
    release = tree.release
    inputs = _tree_inputs(tree)

    def make(folder: Path) -> None:
        step("building modules", 0.5)
        source = str(folder / "src")
        command = [process.need("make", "make"), *make_words(tree.arch), "-C", tree.path]
        make_modules(folder, command, source, release)
        # What is measured is what lies here, whatever becomes of the tree.
        for name, kept in _kept(tree).items():
            shutil.copyfile(tree.path / name, folder / kept)
        keep_own_modules(tree.path, folder, tree.arch)
        if _tree_inputs(tree) != inputs:
            raise IopathError(f"tree:{tree.path} has changed meanwhile: wait until it is built")

    modules = cache.entry(*modules_entry({"tree": inputs}), make)
    return built(release, "", f"tree {tree.path}", modules, modules, arch=tree.arch)


def make_words(arch: Arch) -> list[str]:
    """What make of a kernel is told where that is not of this machine's architecture."""
    if arch == X86_64:
        return []
    cross_compiler(arch)
    return [f"ARCH={arch.source}", f"CROSS_COMPILE={arch.triplet}-"]


def own_modules(tree: Path, arch: Arch) -> list[Path]:
    """The modules of a built tree that a guest may need."""
    parts = module_parts(arch)
    found = [path for part in parts for path in (tree / part).rglob("*.ko")]
    found += [path for part in parts for path in tree.glob(f"{part}.ko")]
    return sorted(found)


def keep_own_modules(tree: Path, folder: Path, arch: Arch) -> None:
    """Copy these to folder/lib, and the list of what is built in."""
    for path in [*own_modules(tree, arch), *tree.glob(BUILT_IN)]:
        target = folder / "lib" / path.relative_to(tree)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def _tree_inputs(tree: Tree) -> dict[str, object]:
    """All of a tree that takes part in a measurement: what runs, and what our modules are built
    with and against."""
    files = [
        *map(tree.path.joinpath, (*_kept(tree), "Module.symvers")),
        *own_modules(tree.path, tree.arch),
    ]
    compiler = cross_compiler(tree.arch).resolve()
    tools = [tree.path / name for name in ("tools/objtool/objtool", "scripts/mod/modpost")]
    return {
        **{str(path.relative_to(tree.path)): digest_file(path) for path in files},
        "compiler": [str(compiler), digest_file(compiler)],
        "tools": [digest_file(path) for path in tools if path.is_file()],
        "headers": _headers_digest(tree),
    }


def _headers_digest(tree: Tree) -> str:
    """One digest of the headers of a tree, without the two that only say when it was built."""
    state = hashlib.sha256()
    for top in dict.fromkeys((tree.path, tree.source)):
        for part in ("include", f"arch/{tree.arch.source}/include"):
            for path in sorted((top / part).rglob("*.h")):
                if path.name not in ("compile.h", "utsversion.h"):
                    state.update(f"{path.relative_to(top)}\0{path.stat().st_size}\0".encode())
                    state.update(path.read_bytes())
    return state.hexdigest()


# The modules of this project.


def modules_entry(inputs: dict[str, object]) -> Entry:
    """The cache entry of the modules that are built for *inputs*."""
    return "modules", {**inputs, "source": source_digest(), "recipe": _RECIPE}


def make_modules(folder: Path, command: Sequence[str | Path], source: str, release: str) -> None:
    """Copy the modules' sources to folder/src, unless it has others, and build them with *command*
    (make of a kernel, perhaps in a sandbox); keep the modules and the log. *source* is where
    folder/src is for that command."""
    if not (folder / "src").exists():
        copy_sources(folder / "src")
    log = folder / "build.log"
    jobs = f"-j{os.cpu_count() or 1}"
    if process.run([*command, jobs, f"M={source}", "W=1", "modules"], output=log):
        # The folder goes away with the failed entry; the log must not.
        kept = folder.parent / f"failed-{release}.log"
        shutil.copyfile(log, kept)
        raise IopathError(f"the modules do not build for {release}: {complaint(kept)}")
    for module in (folder / "src").rglob("*.ko"):
        shutil.move(module, folder / module.name)
    shutil.rmtree(folder / "src")


def complaint(log: Path) -> str:
    """The first error in the log of a build, and the log's name."""
    text = log.read_text(errors="replace")
    error = re.search(
        r"^.*\berror\b.*$|^bwrap: .*$|^make.*\*\*\*.*$", text, re.MULTILINE | re.IGNORECASE
    )
    what = error.group(0).strip() if error else process.last_line(log)
    return f"{what} (log: {log})"


def built(
    release: str, version: str, origin: str, image: Path, entry: Path, config: Path | None = None,
    arch: Arch = X86_64,
) -> Built:  # fmt: skip
    """A kernel that is kept in the folder *image*, with the modules in *entry*."""
    vmlinuz, config = image / "vmlinuz", config or image / "config"
    own = image / "lib"
    modules = {path.stem: path for path in sorted(entry.glob("*.ko"))}
    digests = {"vmlinuz": digest_file(vmlinuz), "config": digest_file(config)}
    digests |= {path.name: digest_file(path) for path in modules.values()}
    log = (entry / "build.log").read_text(errors="replace")
    warnings = [line for line in log.splitlines() if re.search(r"\bwarning\b", line, re.IGNORECASE)]
    warnings = [line for line in warnings if not line.startswith("perl: ")]
    return Built(
        release, version, origin, vmlinuz, config, modules, own if own.is_dir() else None,
        digests, warnings, arch,
    )  # fmt: skip
