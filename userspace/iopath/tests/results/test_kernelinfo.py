# SPDX-License-Identifier: GPL-2.0
"""What a kernel says of itself."""

import pytest

from iopath.results.kernelinfo import compiler


@pytest.mark.parametrize(
    ("banner", "text"),
    [
        ("(gcc (Debian 14.2.0-19) 14.2.0, GNU ld (GNU Binutils for Debian) 2.44)",
         "gcc (Debian 14.2.0-19) 14.2.0"),
        ("(Debian clang version 19.1.7 (3+b1), Debian LLD 19.1.7)",
         "Debian clang version 19.1.7 (3+b1)"),
        ("(clang version 19.1.7, LLD 19.1.7)", "clang version 19.1.7"),
        ("(x86_64-linux-gnu-gcc-14 (Debian 14.2.0-19) 14.2.0, GNU ld)",
         "x86_64-linux-gnu-gcc-14 (Debian 14.2.0-19) 14.2.0"),
    ],
)  # fmt: skip
def test_compiler_of_a_banner(banner: str, text: str) -> None:
    assert compiler(f"Linux version 7.2.12 (a@b) {banner} #1 SMP PREEMPT 2026-01-01") == text
