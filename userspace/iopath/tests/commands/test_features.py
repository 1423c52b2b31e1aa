# SPDX-License-Identifier: GPL-2.0
"""Which features are measured, and which are refused."""

from pathlib import Path

import pytest

from helpers.command import Command


def test_a_file_that_is_no_object_of_ebpf(listed: Command, tmp_path: Path) -> None:
    text, spaced = tmp_path / "text.o", tmp_path / "a name.o"
    text.write_text("text")
    spaced.write_text("text")
    for path, wrong in (
        (text, "no object of eBPF with a program: build it with clang --target=bpf -c"),
        (spaced, "a name may have letters, digits, '.', '-' and '_'"),
        (tmp_path / "none.o", "No such file or directory"),
    ):
        said = listed.fails("features", "debian:7.2", "--bpf", path, status=2)
        assert said == f"iopath: --bpf {path}: {wrong}"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--feature", "iostats"], "feature iostats: is for rungs such as mq.pread"),
        (["--with", "audit,iostats"], "feature audit+iostats: is for rungs such as mq.pread"),
        # It goes on to what the recorded mirror lacks.
        (["--with", "audit,trace.block"], "debian:7.2: cannot download"),
        ([], "debian:7.2: cannot download"),
    ],
)
def test_features_that_a_program_cannot_have(
    listed: Command, words: list[str], complaint: str
) -> None:
    """One that was named, alone or together, is refused; the others are left out."""
    done = listed.run("features", "debian:7.2", "--quiet", *words, "--", "dd", "if=/dev/blknull0")
    assert done.stderr.startswith(f"iopath: {complaint}")
