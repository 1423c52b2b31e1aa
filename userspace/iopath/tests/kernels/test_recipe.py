# SPDX-License-Identifier: GPL-2.0
"""How kernels from source are configured."""

import pytest

from iopath.base.arch import AARCH64, X86_64
from iopath.base.errors import UsageError
from iopath.kernels import recipe as kernelbuild


def test_recipe() -> None:
    made = kernelbuild.recipe("trixie", None, ["FOO=y", "CONFIG_BAR=m", "BAZ=n"])
    lines = made.fragment.splitlines()
    assert lines[-3:] == ["CONFIG_FOO=y", "CONFIG_BAR=m", "# CONFIG_BAZ is not set"]
    assert {"CONFIG_FOO=y", "# CONFIG_BAZ is not set", "CONFIG_MODULES=y"} <= set(made.options)
    with pytest.raises(UsageError, match="invalid option 'FOO': must be like FOO=y, FOO=n or L"):
        kernelbuild.recipe("trixie", None, ["FOO"])


def test_recipe_of_clang() -> None:
    """LLVM=1 is no option of Kconfig. What other kernels are known by does not change."""
    usual, made = (kernelbuild.recipe("trixie", None, words) for words in ([], ["LLVM=1"]))
    assert made.fragment == usual.fragment
    assert set(made.options) - set(usual.options) == {"CONFIG_CC_IS_CLANG=y"}
    assert "llvm" not in usual.inputs()
    assert made.inputs()["llvm"] is True
    named = kernelbuild.recipe("trixie", None, made.asked)
    assert named == made


def test_recipe_of_another_architecture() -> None:
    """It has its own options instead of this machine's, and refuses another architecture's
    configuration."""
    lines = [
        set(kernelbuild.recipe("trixie", base, [], arch).fragment.splitlines())
        for arch in (X86_64, AARCH64)
        for base in (None, "")
    ]
    assert ["CONFIG_SERIAL_AMBA_PL011=y" in one for one in lines] == [False] * 2 + [True] * 2
    assert ["CONFIG_X86_64=y" in one for one in lines] == [False, True, False, False]
    assert ["# CONFIG_EFI is not set" in one for one in lines] == [False] * 2 + [True, False]
    with pytest.raises(UsageError, match="the configuration is one of amd64: it must be one of ar"):
        kernelbuild.recipe("trixie", "CONFIG_X86_64=y\n", [], AARCH64)


def test_cut_down() -> None:
    config = "CONFIG_A=y\nCONFIG_B=m\nCONFIG_DEBUG_INFO_BTF=y\n# CONFIG_C is not set\n"
    assert kernelbuild.cut_down(config).splitlines() == [
        "CONFIG_A=y", "# CONFIG_B is not set", "# CONFIG_C is not set",
    ]  # fmt: skip


def test_dropped_options_are_named() -> None:
    """Not those that another value, the project's fragment or a tool decides."""
    base = "CONFIG_A=y\nCONFIG_B=m\nCONFIG_C=7\n# CONFIG_D is not set\nCONFIG_CC_HAS_E=y\n"
    found = kernelbuild.recipe("trixie", base, ["B=n"])
    assert found.dropped("# CONFIG_A is not set\n") == ["CONFIG_C=7"]
    assert kernelbuild.recipe("trixie", "make defconfig", []).dropped("") == []
