# SPDX-License-Identifier: GPL-2.0
"""Which kernel a name means, against recorded package lists."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from iopath.base.arch import AARCH64, X86_64
from iopath.base.cache import Cache
from iopath.base.errors import IopathError, UsageError
from iopath.kernels.apt import UNRELEASED, Package
from iopath.kernels.finder import Finder
from iopath.kernels.sources.debian import (
    DebianKernel,
    arch_of,
    describe_search,
    kernels_between,
    list_debian,
    select,
    series_of,
)
from iopath.kernels.sources.tree import find as parse_tree


@pytest.fixture(scope="module")
def kernels(recorded: list[Package]) -> list[DebianKernel]:
    return list_debian(recorded)


@pytest.mark.parametrize(
    ("spec", "release", "suite"),
    [
        ("5.10", "5.10.0-46-amd64", "bullseye-security"),
        ("6.1", "6.1.0-56-amd64", "bookworm-security"),
        ("6.1.192", "6.1.0-56-amd64", "bookworm-security"),
        ("6.12", "6.12.117+deb13-amd64", "trixie-security"),
        ("7.2-rt", "7.2.12+deb13-rt-amd64", "trixie-backports"),
        ("7.2-cloud", "7.2.12+deb13-cloud-amd64", "trixie-backports"),
        ("7.3", "7.3.4+deb13-amd64", "trixie-backports"),
        ("7.3-amd64", "7.3-amd64", "experimental"),
        ("7.2.11+deb13-amd64", "7.2.11+deb13-amd64", "trixie-backports"),
        ("7.2.11+deb13", "7.2.11+deb13-amd64", "trixie-backports"),
        ("7.2.11+deb13-rt", "7.2.11+deb13-rt-amd64", "trixie-backports"),
        ("6.1.0-0.deb11.52", "6.1.0-0.deb11.52-amd64", "bullseye-security"),
    ],
)
def test_select(kernels: list[DebianKernel], spec: str, release: str, suite: str) -> None:
    kernel, _ = select(spec, kernels)
    assert (kernel.release, kernel.suite, kernel.missing) == (release, suite, "")


@pytest.mark.parametrize(
    ("spec", "release"),
    [
        ("6.1-arm64", "6.1.0-56-arm64"),
        ("6.12-arm64", "6.12.117+deb13-arm64"),
        ("6.12-arm64-16k", "6.12.117+deb13-arm64-16k"),
        ("7.2-rt-arm64", "7.2.12+deb13-rt-arm64"),
        ("7.2.12+deb13-arm64", "7.2.12+deb13-arm64"),
    ],
)
def test_select_arm64(recorded_arm64: list[Package], spec: str, release: str) -> None:
    kernel, _ = select(spec, list_debian(recorded_arm64))
    assert (kernel.release, kernel.missing) == (release, "")
    assert (kernel.arch, arch_of(spec)) == (AARCH64, AARCH64)
    assert "gcc-1" in kernel.depends


def test_ends_of_a_search_are_of_one_architecture(kernels: list[DebianKernel]) -> None:
    with pytest.raises(UsageError, match="are of different architectures"):
        kernels_between("6.1", "7.2-arm64", kernels)


def test_architecture_of_a_name() -> None:
    """Without one, it is this machine's."""
    for spec in ("6.1", "7.2-rt", "7.2.12+deb13-amd64", "6.1.0-0.deb11.52", "9.9"):
        assert arch_of(spec) == X86_64


def test_released_before_unreleased(kernels: list[DebianKernel]) -> None:
    """sid has a newer 7.2, built by a newer compiler; it is taken only if the name says so."""
    chosen, _ = select("7.2", kernels)
    newest = [k for k in kernels if k.upstream.startswith("7.2.") and not k.flavour][-1]
    assert newest.suite in UNRELEASED
    assert (chosen.release, chosen.suite) == ("7.2.12+deb13-amd64", "trixie-backports")
    assert select(newest.release, kernels)[0] == newest


def test_unreleased_when_there_is_no_other(kernels: list[DebianKernel]) -> None:
    others = [k for k in kernels if k.suite in UNRELEASED or not k.upstream.startswith("7.3")]
    assert select("7.3", others)[0].release == "7.3-amd64"


@pytest.mark.parametrize(
    ("release", "packages"),
    [
        ("6.1.0-56-amd64", ["linux-image-6.1.0-56-amd64"]),
        (
            "7.2.12+deb13-amd64",
            ["linux-binary-7.2.12+deb13-amd64", "linux-modules-7.2.12+deb13-amd64"],
        ),
        (
            "7.3.4+deb13-amd64",
            ["linux-binary-unsigned-7.3.4+deb13-amd64", "linux-modules-7.3.4+deb13-amd64"],
        ),
    ],
)
def test_image_packages(kernels: list[DebianKernel], release: str, packages: list[str]) -> None:
    """Whole image packages, split ones since 6.19, and unsigned ones if there are no signed
    ones."""
    kernel = next(k for k in kernels if k.release == release)
    assert [package.split("=")[0] for package in kernel.image] == packages
    assert {package.split("=")[1] for package in kernel.image} == {kernel.version}
    assert kernel.headers == f"linux-headers-{release}={kernel.version}"


def test_unsigned_when_the_signed_is_gone(recorded: list[Package]) -> None:
    fewer = [p for p in recorded if p.name != "linux-image-6.1.0-50-amd64"]
    kernel, _ = select("6.1.0-50-amd64", list_debian(fewer))
    assert [p.split("=")[0] for p in kernel.image] == ["linux-image-6.1.0-50-amd64-unsigned"]


@pytest.mark.parametrize(
    ("spec", "missing"),
    [
        ("6.19", "linux-modules-6.19.14+deb13-amd64 (= 6.19.14-1~bpo13+1)"),
        ("7.1", "linux-modules-7.1.13+deb13-amd64 (= 7.1.13-1~bpo13+1)"),
        ("6.18", "linux-headers-6.18.15+deb13-amd64 (= 6.18.15-1~bpo13+1)"),
    ],
)
def test_gone(kernels: list[DebianKernel], spec: str, missing: str) -> None:
    with pytest.raises(
        IopathError, match=re.escape(f"{missing} is no longer on the mirror")
    ) as told:
        select(spec, kernels)
    assert told.value.status == 1


def test_newer_that_lacks_a_part_is_passed_over(recorded: list[Package]) -> None:
    lost = "linux-headers-6.1.0-56-common"
    kernel, passed_over = select("6.1", list_debian([p for p in recorded if p.name != lost]))
    assert kernel.release == "6.1.0-55-amd64"
    assert [k.release for k in passed_over] == ["6.1.0-56-amd64"]
    assert passed_over[0].missing.startswith(lost)


def test_versions_of_dependencies_count(recorded: list[Package]) -> None:
    """A kbuild package that is older than the headers require counts as missing."""
    packages = [
        replace(p, version="6.1.1-1") if p.name == "linux-kbuild-6.1" else p for p in recorded
    ]
    kernel = next(k for k in list_debian(packages) if k.release == "6.1.0-56-amd64")
    assert kernel.missing.startswith("linux-kbuild-6.1 ")


@pytest.mark.parametrize("spec", ["9.9", "6.1.0-999-amd64", "7.2-fast", "", "6"])
def test_unknown(kernels: list[DebianKernel], spec: str) -> None:
    near = ": did you mean '6.1.0-56-amd64'?" if spec.startswith("6.1.0") else ";"
    expected = re.escape(f"no such kernel{near} there are 5.10, 6.1, 6.12, ")
    with pytest.raises(UsageError, match=expected) as told:
        select(spec, kernels)
    assert told.value.status == 2


def test_reversed_ends_of_a_search_are_said(kernels: list[DebianKernel]) -> None:
    there = kernels_between("6.1", "6.12", kernels)
    back = kernels_between("6.12", "6.1", kernels)
    assert back == there[::-1]
    first, last = there[0].release, there[-1].release
    assert describe_search(there, kernels) == f"{len(there)} kernels from {first} to {last}"
    assert describe_search(back, kernels) == (
        f"{len(there)} kernels from {last} to {first}; GOOD ({last}) is newer than BAD ({first}):"
        " searching backwards"
    )


def test_6_1_is_not_6_12(kernels: list[DebianKernel]) -> None:
    assert select("6.1", kernels)[0].upstream == "6.1.192"


def test_no_meta_packages_and_each_release_once(kernels: list[DebianKernel]) -> None:
    releases = [kernel.release for kernel in kernels]
    assert len(set(releases)) == len(releases)
    assert all(re.match(r"\d+\.\d+.*-amd64$", release) for release in releases)
    assert {kernel.flavour for kernel in kernels} == {"", "rt", "cloud"}


def test_series_are_of_what_can_be_had(kernels: list[DebianKernel]) -> None:
    assert series_of(kernels) == ["5.10", "6.1", "6.12", "7.2", "7.3"]


def test_tree_that_was_not_built(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="bzImage is missing: build the kernel there first"):
        parse_tree(str(tmp_path), Finder(Cache(tmp_path / "cache"), print))
