# SPDX-License-Identifier: GPL-2.0
"""debian:...: kernels of Debian's packages.

debian:6.1                    the newest available 6.1, of a released suite if there is one
debian:7.2-rt                 the same, of the flavour rt (or cloud)
debian:7.2-arm64              the same of another architecture; also 7.2-rt-arm64, 7.2-arm64-16k
debian:7.2.12+deb13-amd64     exactly this one, as uname -r prints it
"""

import functools
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from iopath.base.arch import ARCHES, X86_64, Arch
from iopath.base.cache import Cache
from iopath.base.errors import IopathError, UsageError, did_you_mean
from iopath.base.versions import version_key
from iopath.kernels import kbuild, own_modules
from iopath.kernels.apt import KERNEL_PACKAGE, SUITES, UNRELEASED, Apt, Package
from iopath.kernels.built import Built, Entry, Step, built
from iopath.kernels.finder import Finder
from iopath.kernels.kernel import Kernel, Parts
from iopath.kernels.root import root, sandbox
from iopath.kernels.unpack import unpack
from iopath.kernels.watching import State, Watching

NAMES = ("debian:SERIES", "debian:RELEASE")

_FLAVOUR = "(?:-(rt|cloud))?"
_ARCH = f"-({'|'.join(arch.debian for arch in ARCHES)})(?:-(16k))?"  # with the size of pages
_IMAGE = re.compile(rf"linux-(?:image|binary(?:-unsigned)?)-(\d.*{_ARCH})(?:-unsigned)?$")
_RELEASE = re.compile(rf"(.*?){_FLAVOUR}{_ARCH}$")
_SERIES = re.compile(rf"(\d+\.\d+(?:\.\d+)?){_FLAVOUR}(?:{_ARCH})?$")
_ENDS = ("/*", ".ko*")  # of the files of a part of a kernel's own modules

# Increase this if this file makes other entries than before from the same inputs.
_RECIPE = 1

_RELATION = re.compile(r"(\S+?)(?::\w+)?(?:\s*\(\s*(\S+)\s+(\S+)\s*\))?$")


@dataclass(frozen=True)
class DebianKernel(Kernel):
    """A packaged kernel. *release* is what uname -r will print, *image* the packages that hold the
    kernel and its modules, *headers* what modules are built against, each "name=version". *depends*
    are the packages that these depend on. *missing* says what the mirror lacks; empty if the kernel
    is available."""

    release: str
    version: str
    suite: str
    image: tuple[str, ...]
    headers: str
    depends: str
    missing: str

    @property
    def debug(self) -> str:
        """The package that holds the kernel's debug information, "name=version"."""
        return f"linux-image-{self.release}-dbg={self.version}"

    @property
    def flavour(self) -> str:
        return _release(self.release)[1]

    @property
    def arch(self) -> Arch:
        return _release(self.release)[2]

    @property
    def series(self) -> str:
        """The series that it belongs to, e.g. "6.1"."""
        return ".".join(re.split(r"[.~]", self.upstream)[:2])

    @property
    def upstream(self) -> str:
        """The upstream version, e.g. "6.1.192" or "7.3~rc7"."""
        return self.version.rsplit("-", 1)[0]

    @property
    def title(self) -> str:
        return self.release

    @property
    def subject(self) -> str:
        return f"Debian {self.suite}"

    def prepare(self, cache: Cache, apt: Apt, step: Step) -> Built:
        for_image, for_modules = entries(self)
        image = cache.entry(*for_image, lambda folder: _make_image(folder, self, apt, step))
        modules = cache.entry(
            *for_modules, lambda folder: build_modules(folder, self, cache, apt, step)
        )
        return built(
            self.release, self.version, self.subject, image, modules, modules / "config", self.arch
        )

    def debug_info(self, built: Built, cache: Cache, apt: Apt, step: Step) -> Path:
        inputs = {"package": self.debug, "recipe": _RECIPE}
        made = cache.entry("debug", inputs, lambda folder: _make_debug(folder, self, apt, step))
        return made / "vmlinux"

    def parts(self, cache: Cache, apt: Apt, step: Step) -> Parts:
        return entries(self), apt.of(self.arch).digests([*self.image, self.headers])

    def is_kept(self, cache: Cache) -> bool:
        """Whether the cache has the kernel itself."""
        return cache.path(*image_entry(self)).exists()


class _SuitePackages:
    """The newest version of each package in the suites that one suite's packages depend on."""

    def __init__(self, packages: Iterable[Package]) -> None:
        self._versions: dict[str, list[Package]] = {}
        for package in packages:
            self._versions.setdefault(package.name, []).append(package)
        self._meets = functools.cache(self._has)  # most relations are those of several packages

    def find(self, name: str, version: str | None = None) -> Package | None:
        for package in self._versions.get(name, ()):
            if version is None or package.version == version:
                return package
        return None

    def unmet(self, package: Package) -> str:
        """The first dependency on a kernel package that nothing here satisfies."""
        for clause in package.depends.split(","):
            choices = [choice.strip() for choice in clause.split("|")]
            if not all(choice.startswith("linux-") for choice in choices):
                continue
            if not any(self._meets(choice) for choice in choices):
                return choices[0]
        return ""

    def _has(self, relation: str) -> bool:
        match = _RELATION.match(relation)
        if not match:
            return False
        name, operator, wanted = match.groups()
        if not KERNEL_PACKAGE.match(name):
            return True  # not a package that the index keeps: apt will check it
        found = self._versions.get(name, ())
        if not operator:
            return bool(found)
        if operator == "=":
            return any(package.version == wanted for package in found)
        return any(version_key(package.version) >= version_key(wanted) for package in found)


def list_debian(packages: Sequence[Package]) -> list[DebianKernel]:
    """Every kernel that *packages* hold, oldest first; a release once, in its newest version.

    A kernel with a missing part is listed, too, with the name of that part.
    """
    by_suite: dict[str, list[Package]] = {}
    for package in packages:
        by_suite.setdefault(package.suite, []).append(package)
    found: dict[str, DebianKernel] = {}
    for suite, around_it in SUITES.items():
        around = _SuitePackages(package for part in around_it for package in by_suite.get(part, ()))
        for package in by_suite.get(suite, ()):
            match = _IMAGE.match(package.name)
            if not match or _is_meta(package):
                continue
            kernel = _describe(match.group(1), package.version, suite, around)
            known = found.get(kernel.release)
            if known is None or _rank(kernel) > _rank(known):
                found[kernel.release] = kernel
    return sorted(found.values(), key=_rank)


def _is_meta(package: Package) -> bool:
    """Whether it only depends on the newest kernel package."""
    return any(
        other != package.name and other.startswith("linux-image-")
        for other in re.findall(r"linux-image-\S+", package.depends)
    )


def _rank(kernel: DebianKernel) -> tuple[tuple, bool, str]:
    return version_key(kernel.version), not kernel.missing, kernel.release


def _describe(release: str, version: str, suite: str, around: _SuitePackages) -> DebianKernel:
    """The kernel *release* with the packages it takes. A signed kernel is preferred to an unsigned
    one; since 6.19 the image package is empty, and kernel and modules have packages of their
    own."""
    split = (f"linux-modules-{release}",)
    choices = (
        (f"linux-image-{release}",),
        (f"linux-binary-{release}", *split),
        (f"linux-image-{release}-unsigned",),
        (f"linux-binary-unsigned-{release}", *split),
    )
    image: tuple[str, ...] = ()
    missing = ""
    for choice in choices:
        first = around.find(choice[0], version)
        if first is None or "linux-binary-" in first.depends:
            continue
        absent = [name for name in choice if around.find(name, version) is None]
        if not absent:
            image = tuple(f"{name}={version}" for name in choice)
            missing = ""
            break
        missing = missing or f"{absent[0]} (= {version})"
    headers = f"linux-headers-{release}"
    package = around.find(headers, version)
    if not image:
        missing = missing or f"linux-binary-{release} (= {version})"
    elif package is None:
        missing = f"{headers} (= {version})"
    else:
        missing = around.unmet(package)
        common = _release(release)[0]
        for name in (f"linux-headers-{common}", f"linux-kbuild-{common}"):
            found = around.find(name)
            if not missing and found:
                missing = around.unmet(found)
    depends = package.depends if package else ""
    return DebianKernel(release, version, suite, image, f"{headers}={version}", depends, missing)


def _release(release: str) -> tuple[str, str, Arch]:
    """The parts of a release: what all kernels of its version have in common, the flavour, and the
    architecture."""
    match = _RELEASE.match(release)
    if match is None:
        return release, "", X86_64
    common, kind, name, pages = match.groups()
    arch = next(arch for arch in ARCHES if arch.debian == name)
    return common, "-".join(filter(None, (kind, pages))), arch


def arch_of(spec: str) -> Arch:
    """The architecture of the kernel that "debian:*spec*" asks for."""
    return _release(spec)[2]


def available(finder: Finder, arch: Arch = X86_64, *, update: bool = False) -> list[DebianKernel]:
    """The kernels of an architecture that the package lists have; *update* fetches new ones."""
    return finder.once(
        ("debian", arch),
        lambda: list_debian(finder.apt.of(arch).packages(update=update)),
        again=update,
    )


def find(spec: str, finder: Finder) -> DebianKernel:
    kernel, passed_over = select(spec, available(finder, arch_of(spec)))
    for newer in passed_over:
        finder.warn(
            f"debian:{spec}: skipping {newer.release}: {newer.missing} is no longer on the mirror"
        )
    return kernel


def select(spec: str, kernels: Sequence[DebianKernel]) -> tuple[DebianKernel, list[DebianKernel]]:
    """The kernel that "debian:*spec*" asks for, and the newer ones skipped because the mirror
    lacks a part of them.

    The newest of a series is chosen, but one from a Debian release is preferred to one from
    testing, unstable or experimental: another compiler builds those, and its effect would be
    attributed to the kernel. Raises UsageError if there is no such kernel, IopathError if the
    mirror lacks a part of it."""
    matching = select_all(spec, kernels)
    usable = [kernel for kernel in matching if not kernel.missing]
    if not usable:
        newest = matching[-1]
        raise IopathError(
            f"debian:{spec}: {newest.release} is unavailable: {newest.missing} is no longer on the"
            f" mirror; there are {', '.join(series_of(kernels))} (iopath kernels lists each)"
        )
    released = [kernel for kernel in usable if kernel.suite not in UNRELEASED]
    chosen = (released or usable)[-1]
    passed_over = [
        kernel
        for kernel in matching
        if kernel.missing and kernel.suite not in UNRELEASED and _rank(kernel) > _rank(chosen)
    ]
    return chosen, passed_over


def select_all(spec: str, kernels: Sequence[DebianKernel]) -> list[DebianKernel]:
    """Every kernel that "debian:*spec*" may stand for, oldest first, also those of which the mirror
    lacks a part. Raises UsageError if there is none."""
    # 7.3-amd64 may be a release, or a name of the series 7.3 of this architecture.
    exact = [kernel for kernel in kernels if kernel.release == spec]
    series = _SERIES.match(spec)
    if exact:
        matching = exact
    elif series:
        number = series.group(1)
        flavour = "-".join(filter(None, series.group(2, 4)))
        prefix = re.compile(re.escape(number) + r"(?![0-9])")
        matching = [k for k in kernels if prefix.match(k.upstream) and k.flavour == flavour]
    else:
        matching = [k for k in kernels if k.release in (spec, f"{spec}-{X86_64.debian}")]
    if not matching:
        releases = () if series else [k.release for k in kernels if not k.missing]
        near = did_you_mean(spec, releases) or ";"
        raise UsageError(
            f"debian:{spec}: no such kernel{near} there are {', '.join(series_of(kernels))}"
            " (iopath kernels lists each)"
        )
    return matching


def between(good: str, bad: str, finder: Finder) -> tuple[list[str], str]:
    known = available(finder, arch_of(good))
    kernels = kernels_between(good, bad, known)
    return [f"debian:{kernel.release}" for kernel in kernels], describe_search(kernels, known)


def kernels_between(good: str, bad: str, kernels: Sequence[DebianKernel]) -> list[DebianKernel]:
    """The packaged kernels from *good* to *bad* (specs without "debian:"), in that order.

    Only those of the same flavour, and of the same build for a suite ("+deb13") where both ends are
    of one: what differs should be the kernel, not its compiler.
    """
    if arch_of(good) != arch_of(bad):
        raise UsageError(f"{good} and {bad} are of different architectures")
    first, _ = select(good, kernels)
    last, _ = select(bad, kernels)
    if first.release == last.release:
        raise UsageError(f"both ends are {first.release}: there is nothing in between")
    if first.flavour != last.flavour:
        raise UsageError(f"{first.release} and {last.release} are of different flavours")
    builds = {_build(first), _build(last)}
    released = first.suite not in UNRELEASED and last.suite not in UNRELEASED
    candidates = [
        kernel
        for kernel in kernels
        if not kernel.missing
        and kernel.flavour == first.flavour
        and (len(builds) > 1 or _build(kernel) in builds)
        and not (released and kernel.suite in UNRELEASED)
    ]
    at, to = candidates.index(first), candidates.index(last)
    return candidates[at : to + 1] if at < to else candidates[to : at + 1][::-1]


def describe_search(kernels: Sequence[DebianKernel], listed: Sequence[DebianKernel]) -> str:
    """What is searched; *listed* has all kernels, oldest first. It is said if the good end is the
    newer one, which may be a mistake."""
    good, bad = kernels[0], kernels[-1]
    text = f"{len(kernels)} kernels from {good.release} to {bad.release}"
    if listed.index(good) > listed.index(bad):
        text += f"; GOOD ({good.release}) is newer than BAD ({bad.release}): searching backwards"
    return text


def _build(kernel: DebianKernel) -> str:
    match = re.search(r"\+(deb\d+)", kernel.release)
    return match.group(1) if match else ""


def series_of(kernels: Iterable[DebianKernel]) -> list[str]:
    """The available series, oldest first, e.g. ["5.10", "6.1"]."""
    return list(dict.fromkeys(kernel.series for kernel in kernels if not kernel.missing))


def by_series(kernels: Sequence[DebianKernel], arch: Arch) -> dict[str, DebianKernel]:
    """The available kernels of an architecture that a series and a flavour stand for, by the names
    that ask for them, e.g. "7.2-rt"."""
    found = {}
    for kernel in kernels:
        flavour = f"-{kernel.flavour}" if kernel.flavour else ""
        if arch == X86_64:
            name = f"{kernel.series}{flavour}"
        else:
            rt, pages = kernel.flavour.partition("16k")[:2]
            name = "-".join(filter(None, (kernel.series, rt.strip("-"), arch.debian, pages)))
        if not kernel.missing and name not in found:
            found[name] = select(name, kernels)[0]
    return found


def _states(
    spec: str, finder: Finder, *, newest: bool, every: int, merges: bool
) -> Iterator[State]:
    known = available(finder, arch_of(spec))
    found = select_all(spec, known)
    if newest:
        try:
            found = [select(spec, known)[0]]
        except UsageError:
            raise
        except IopathError:
            found = found[-1:]
    return map(_state, found)


def _kept(spec: str, finder: Finder, states: Sequence[State]) -> Iterator[State]:
    """Also those that are no longer watched."""
    for arch in ARCHES:
        if any(one.arch == arch.name for one in states):
            yield from map(_state, available(finder, arch))


def _state(kernel: DebianKernel) -> State:
    """A kernel, on the line of its release of Debian and flavour: those have one compiler."""
    arch = "" if kernel.arch is X86_64 else kernel.arch.debian
    flavour = "".join(f"-{word}" for word in (kernel.flavour, arch) if word)
    line = "testing" if kernel.suite in UNRELEASED else kernel.suite.partition("-")[0]
    return State(
        f"debian:{kernel.release}", f"{kernel.version}{flavour}", kernel.version,
        f"{kernel.release}, {kernel.suite}", f"{line}{flavour}", arch=kernel.arch.name,
        missing=kernel.missing,
    )  # fmt: skip


WATCH = Watching("kernels of Debian", ("releases",), NAMES, _states, _kept)


# Prepare a kernel: its image, then our modules in a root file system with its headers.


def image_entry(kernel: DebianKernel) -> Entry:
    """The cache entry of the image of *kernel*."""
    own = own_modules.module_parts(kernel.arch)
    return "image", {"packages": kernel.image, "modules": own, "recipe": _RECIPE}


def entries(kernel: DebianKernel) -> tuple[Entry, Entry]:
    """The cache entries that a prepared kernel consists of: its image, and our modules."""
    built_for = {"release": kernel.release, "headers": kernel.headers, "suite": kernel.suite}
    return image_entry(kernel), kbuild.modules_entry(built_for)


def _make_image(folder: Path, kernel: DebianKernel, apt: Apt, step: Step) -> None:
    own = apt.of(kernel.arch)
    own.download(
        kernel.image, kernel.suite, closure=False, progress=lambda p: step("downloading", p)
    )
    step("unpacking", 0)
    debs = [_deb_of(own, kernel, package) for package in kernel.image]
    unpacked = folder / "unpacked"
    patterns = ["./boot/vmlinuz*", "*/modules/*/vmlinuz*"]
    patterns += [
        f"*/modules/*/kernel/{part}{end}"
        for part in own_modules.module_parts(kernel.arch)
        for end in _ENDS
    ]
    patterns.append(f"*/modules/*/{own_modules.BUILT_IN}")
    for deb in debs:
        unpack(deb, unpacked, only=patterns)
    _keep_image(kernel.release, unpacked, folder)


def _deb_of(apt: Apt, kernel: DebianKernel, package: str) -> Path:
    name, version = package.split("=", 1)
    return apt.deb(f"{name}_{version.replace(':', '%3a')}_{kernel.arch.debian}.deb")


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


def build_modules(folder: Path, kernel: DebianKernel, cache: Cache, apt: Apt, step: Step) -> None:
    """Build our modules, or what is in folder/src, for a kernel; keep them in *folder*."""
    at = headers_root(kernel, cache, apt, step)
    headers = next((at / "usr/src").glob(f"linux-headers-{kernel.release}"), None)
    if headers is None:
        raise IopathError(f"{kernel.headers} has no /usr/src/linux-headers-{kernel.release}")
    command = [*sandbox(at, "--bind", folder / "src", "/src", "--chdir", "/src"), "make"]
    step("building modules", 0.5)
    command += [*_cross(kernel), "-C", f"/{headers.relative_to(at)}"]
    kbuild.make_modules(folder, command, "/src", kernel.release)
    shutil.copyfile(headers / ".config", folder / "config")


def headers_root(kernel: DebianKernel, cache: Cache, apt: Apt, step: Step) -> Path:
    """A root file system that holds the kernel's headers and the compiler they ask for. For a
    kernel of another architecture it is a compiler that runs on this machine; the headers' own
    dependencies would install one that does not."""
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
    """The arguments of make for headers of another architecture than this machine's."""
    if kernel.arch == X86_64:
        return []
    host = f"DEB_HOST_ARCH={kernel.arch.debian}"
    return [f"DEB_BUILD_ARCH={X86_64.debian}", host, f"DEB_HOST_GNU_TYPE={kernel.arch.triplet}"]


def _make_debug(folder: Path, kernel: DebianKernel, apt: Apt, step: Step) -> None:
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
    deb.unlink()  # it is large, and not needed any more
