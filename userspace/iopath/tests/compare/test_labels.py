# SPDX-License-Identifier: GPL-2.0
"""What kernels differ in besides their source."""

import itertools
from typing import Any

import pytest

from iopath.compare import labels as labelled
from iopath.compare.labels import brief, labels
from iopath.results.kernelinfo import options
from iopath.results.result import MeasuredKernel


def configured(*configs: str) -> list[str]:
    rest: Any = dict.fromkeys(("release", "banner", "compiler", "cmdline", "clocksource"), "x")
    rest["modules"] = {}
    kernels = [
        {"name": f"k{number}", "config": options(text)} for number, text in enumerate(configs)
    ]
    found = [MeasuredKernel(**kernel, **rest) for kernel in kernels]
    return list(labels(found, labelled.options(found)))


def test_every_option_is_a_label() -> None:
    same = "CONFIG_HZ=250\n# CONFIG_SLUB_TINY is not set\n"
    assert configured(same, same) == []
    assert configured(
        f"{same}CONFIG_SLAB_FREELIST_HARDENED=y\nCONFIG_PREEMPT_RT=y\n",
        f"{same}# CONFIG_SLAB_FREELIST_HARDENED is not set\n# CONFIG_PREEMPT_RT is not set\n",
    ) == ["options: PREEMPT_RT y/n", "other options: SLAB_FREELIST_HARDENED y/n"]


def test_architectures_are_a_label() -> None:
    rest: Any = dict.fromkeys(("release", "banner", "compiler", "cmdline", "clocksource"), "x")
    rest |= {"modules": {}, "config": {}}
    kernels = [MeasuredKernel(name="k0", **rest), MeasuredKernel(name="k1", arch="aarch64", **rest)]
    assert list(labels(kernels, {})) == ["architecture: k0 x86_64; k1 aarch64"]
    assert list(labels([kernels[1], kernels[1]], {})) == []


@pytest.mark.parametrize(
    ("compilers", "text"),
    [
        (["gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0",
          "x86_64-linux-gnu-gcc-14 (Debian 14.2.0-19) 14.2.0"], "GCC 12 to 14"),
        (["gcc-14 (Debian 14.2.0-19) 14.2.0", "gcc-9 (Debian 9.3.0-22) 9.3.0"], "GCC 14 to 9"),
        (["gcc 12.2.0", "gcc 14.2.0", "gcc 16.1.0"], "GCC 12 to 16"),
        (["gcc 14.2.0", "gcc 12.2.0", "gcc 16.1.0"], "GCC 14 to 12 to 16"),
        (["gcc 14.2.0", "gcc 14.10.0"], "GCC 14.2.0 to 14.10.0"),
        (["gcc-14 (Debian) 14.2.0", "gcc (Ubuntu) 14.2.0"], "two builds of GCC 14.2.0"),
        (["gcc 14.2.0", "clang version 19.1.7"], "GCC 14.2.0 and Clang 19.1.7"),
        (["gcc 14.2.0", "x"], "compilers"),
    ],
)  # fmt: skip
def test_labels_in_brief(compilers: list[str], text: str) -> None:
    rest: Any = dict.fromkeys(("release", "banner", "cmdline", "clocksource"), "x")
    rest["modules"] = {}
    configs = ({"HZ": "250", "NEW": "y", "MODULE": "m"}, {"HZ": "1000", "SOME": "n"})
    kernels = [
        MeasuredKernel(name=compiler, compiler=compiler, config=config, **rest)
        for compiler, config in zip(compilers, itertools.cycle(configs), strict=False)
    ]
    assert brief(kernels, labelled.options(kernels)) == [
        text,
        "1 relevant option",
        "1 other option",
    ]
    assert brief(kernels[:1] * 2, {}) == []


def test_options_that_a_kernel_does_not_have() -> None:
    assert configured("CONFIG_NEW=y\n", "# CONFIG_OLD is not set\n") == [
        "options that some kernels lack: NEW y/-"
    ]
    many = "".join(f"CONFIG_NEW{number}=y\n" for number in range(500))
    assert configured(many, "") == ["options that some kernels lack: 500 (--json lists them)"]


def test_probes_of_the_toolchain_are_no_options() -> None:
    probes = (
        "CC_HAS_KASAN=y", "CC_VERSION_TEXT=\"gcc\"", "GCC_VERSION=120200", "LD_VERSION=1",
        "AS_AVX512=y", "PAHOLE_VERSION=124", "RUSTC_VERSION=0", "HAS_IOMEM=y",
        "ARCH_HAS_X=y", "HAVE_KPROBES=y", "BUILD_SALT=\"6.1\"",
    )  # fmt: skip
    assert configured("".join(f"CONFIG_{probe}\n" for probe in probes), "") == []
    assert configured("CONFIG_CC_OPTIMIZE_FOR_SIZE=y\n", "") == [
        "options: CC_OPTIMIZE_FOR_SIZE y/-"
    ]


def test_modules_are_counted() -> None:
    one = "CONFIG_A=m\n# CONFIG_B is not set\nCONFIG_C=m\n"
    assert configured(one, "# CONFIG_A is not set\nCONFIG_B=m\nCONFIG_C=y\n") == [
        "other options: C m/y",
        "options of modules: 2 (--json lists them)",
    ]


def test_a_mitigation_is_known_by_both_of_its_names() -> None:
    assert configured("CONFIG_RETPOLINE=y\n", "CONFIG_MITIGATION_RETPOLINE=y\n") == []
