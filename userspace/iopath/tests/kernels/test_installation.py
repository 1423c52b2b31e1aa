# SPDX-License-Identifier: GPL-2.0
"""Where the parts of an installed kernel are, as each distribution lays them out."""

from pathlib import Path

import pytest

from iopath.base.arch import AARCH64, X86_64
from iopath.base.errors import IopathError, UsageError
from iopath.kernels import installation
from iopath.kernels.kernel import NEEDED

RELEASE = "6.99.1-7"
GOOD = [f"CONFIG_{option}=y" for option in (X86_64.option, *X86_64.options, *NEEDED)]


def files(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name.format(RELEASE)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(RELEASE + "\n")
    return root


@pytest.mark.parametrize(
    ("names", "image", "config", "headers"),
    [
        (
            ("boot/vmlinuz-{}", "boot/config-{}", "usr/src/linux-headers-{}/Makefile",
             "usr/src/linux-headers-{}/include/config/kernel.release", "lib/modules/{}/x.ko"),
            "boot/vmlinuz-{}", "boot/config-{}", "usr/src/linux-headers-{}",
        ),
        (
            ("lib/modules/{}/vmlinuz", "lib/modules/{}/config",
             "usr/src/kernels/{}/include/config/kernel.release"),
            "lib/modules/{}/vmlinuz", "lib/modules/{}/config", "usr/src/kernels/{}",
        ),
        (
            ("usr/lib/modules/{}/vmlinuz", "usr/lib/modules/{}/config",
             "usr/src/linux-{}-obj/x86_64/default/include/config/kernel.release"),
            "usr/lib/modules/{}/vmlinuz", "usr/lib/modules/{}/config",
            "usr/src/linux-{}-obj/x86_64/default",
        ),
    ],
    ids=["Debian and Ubuntu", "Fedora and RHEL", "SUSE"],
)  # fmt: skip
def test_layouts(
    tmp_path: Path, names: tuple[str, ...], image: str, config: str, headers: str
) -> None:
    root = files(tmp_path, *names)
    assert installation.releases(root) == [RELEASE]
    assert installation.image(root, RELEASE) == root / image.format(RELEASE)
    found = installation.headers(root, RELEASE)
    assert found == root / headers.format(RELEASE)
    assert installation.config(root, RELEASE, found) == root / config.format(RELEASE)


def test_link_to_headers_is_followed_below_the_root(tmp_path: Path) -> None:
    root = files(tmp_path, "usr/src/kernels/{}/Makefile", "lib/modules/{}/vmlinuz")
    link = root / f"lib/modules/{RELEASE}/build"
    link.symlink_to(f"/usr/src/kernels/{RELEASE}")
    assert installation.headers(root, RELEASE) == root / f"usr/src/kernels/{RELEASE}"


def test_nothing_there(tmp_path: Path) -> None:
    assert installation.releases(tmp_path) == []
    assert installation.headers(tmp_path, RELEASE) is None
    with pytest.raises(IopathError, match=f"^{RELEASE} has no vmlinuz$"):
        installation.image(tmp_path, RELEASE)


def test_what_cannot_be_measured() -> None:
    installation.check("deb:x", GOOD, X86_64)
    with pytest.raises(UsageError, match=r"^deb:x: .*: build it with CONFIG_DEVTMPFS=y$"):
        installation.check("deb:x", [one for one in GOOD if "DEVTMPFS" not in one], X86_64)
    with pytest.raises(UsageError, match="CONFIG_MODULE_SIG_FORCE=y: only modules that its"):
        installation.check("deb:x", [*GOOD, "CONFIG_MODULE_SIG_FORCE=y"], X86_64)
    assert installation.arch_of(["CONFIG_ARM64=y"]) == AARCH64


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0", 12),
        ("x86_64-linux-gnu-gcc-13 (Ubuntu 13.2.0-23ubuntu4) 13.2.0", 13),
        ("gcc (GCC) 14.2.1 20240912 (Red Hat 14.2.1-3)", 14),
        ("gcc (SUSE Linux) 7.5.0", 7),
        ("Ubuntu clang version 18.1.3 (1ubuntu1)", None),
    ],
)
def test_compiler_of_a_kernel(text: str, version: int | None) -> None:
    assert installation.gcc_version(["CONFIG_X=y", f'CONFIG_CC_VERSION_TEXT="{text}"']) == version
