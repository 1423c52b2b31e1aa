# SPDX-License-Identifier: GPL-2.0
"""What an architecture has besides its row in the package's table: files in the programs. Missing
ones are named."""

from dataclasses import replace
from pathlib import Path

import pytest

from iopath.base.arch import AARCH64, ARCHES, Arch
from iopath.base.sources import source_root


def missing(arch: Arch) -> list[str]:
    """The places that contributing.rst names and that lack an architecture."""
    upper = arch.name.upper()
    wanted = {
        f"userspace/ioloop/arch/{arch.name}.h": ["calibrate("],
        "userspace/ioloop/arch.h": [f'"arch/{arch.name}.h"'],
        "kernel/include/iopath/marker.h": [f"IOPATH_MARK_MAGIC_{upper}"],
        f"userspace/pathcount/arch/{arch.name}.c": [f"arch_{arch.name} ="],
        "userspace/pathcount/arch.c": [f"&arch_{arch.name}"],
        f"userspace/pathcount/tests/decode_{arch.name}.c": ["main("],
        "userspace/setup.sh": [arch.qemu_package],
        "Makefile": [arch.name],
    }
    found = []
    for name, texts in wanted.items():
        path = source_root() / name
        text = path.read_text() if path.is_file() else ""
        found += [name] if any(part not in text for part in texts) else []
    return found


@pytest.mark.parametrize("arch", ARCHES, ids=lambda arch: arch.name)
def test_every_place_has_it(arch: Arch) -> None:
    assert missing(arch) == []


def test_a_place_that_lacks_one_is_named() -> None:
    other = {"qemu_package": "qemu-system-other", "triplet": "sparc64-linux-gnu"}
    planted = missing(replace(AARCH64, name="sparc64", **other))
    assert len(planted) == 8
    documented = (source_root() / "Documentation/contributing.rst").read_text()
    for name in planted:
        assert name in documented or f"{Path(name).parent}/" in documented, name
