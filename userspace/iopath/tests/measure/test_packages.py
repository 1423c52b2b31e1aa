# SPDX-License-Identifier: GPL-2.0
"""Programs are found in an unpacked package."""

from pathlib import Path

import pytest

from iopath.base.errors import IopathError
from iopath.measure import packages


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A package with programs in and outside of the folders for them, and a script."""
    programs = ("usr/lib/postgresql/15/bin/psql", "usr/lib/postgresql/15/bin/initdb")
    for name in ("usr/bin/psql", *programs, "usr/libexec/a/tool", "usr/libexec/b/tool"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\x7fELF")
        path.chmod(0o755)
    for name, mode in (("usr/share/script", 0o755), ("usr/share/data", 0o644)):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"#!" if mode == 0o755 else b"\x7fELF")
        path.chmod(mode)
    return tmp_path


@pytest.mark.parametrize(
    ("program", "found"),
    [
        ("psql", "usr/bin/psql"),
        ("initdb", "usr/lib/postgresql/15/bin/initdb"),
        ("/usr/lib/postgresql/15/bin/psql", "usr/lib/postgresql/15/bin/psql"),
    ],
)
def test_a_program_is_found(root: Path, program: str, found: str) -> None:
    assert packages._find(root, "postgresql-15", program) == root / found


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("tool", "has several programs tool: name one: /usr/libexec/a/tool, /usr/libexec/b/tool"),
        ("none", "has no program none"),
        ("/usr/bin/none", "has no program /usr/bin/none"),
        ("script", "has no program script"),
        ("data", "has no program data"),
    ],
)
def test_what_is_not_one_program(root: Path, program: str, text: str) -> None:
    with pytest.raises(IopathError, match=f"^the package x {text}$"):
        packages._find(root, "x", program)
