# SPDX-License-Identifier: GPL-2.0
"""What is known of a kernel, and what it depends on."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.examples import a_record, a_result
from iopath.base.cache import Cache
from iopath.guest.machine import Machine, Qemu
from iopath.kernels.built import Built
from iopath.measure import known
from iopath.measure.known import Known
from iopath.measure.measurement import Measurement, Prepared
from iopath.results import layers as layers_
from iopath.results import result
from iopath.rungs.builtin import select
from iopath.rungs.runs import Settings, make_runs

BUILT = Built(
    "6.1.0", "6.1.1", "a package", Path("/image/1/vmlinuz"), Path("/image/1/config"), {}, None,
    {"vmlinuz": "1", "biogen.ko": "2"}, [],
)  # fmt: skip
SETTINGS = Settings(select(["syscall", "dio.pread"]), ops=["read"])
QEMU = Qemu(("qemu",), "7.2", "3")


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs of guests are this file."""
    monkeypatch.setattr(known, "guest_program", lambda name, arch=None: Path(__file__))


def inputs(
    name: str = "a kernel",
    settings: Settings = SETTINGS,
    built: Built = BUILT,
    debug: Path | None = None,
    qemu: Qemu = QEMU,
) -> dict[str, object]:
    ready = Prepared.of(settings, built, make_runs(settings)[0], debug)
    programs = known.digests(built.arch, settings)
    return known.inputs(Measurement(name, settings), ready, qemu, programs)


def test_everything_that_a_result_depends_on_is_in_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = tmp_path / "layers.toml"
    layers.write_text("[[layer]]\nname = 'a'\nfunctions = ['a']\n")
    usual = inputs()
    assert usual == inputs()
    others = [
        inputs(name="another"),
        inputs(built=replace(BUILT, digests={"vmlinuz": "1", "biogen.ko": "3"})),
        inputs(built=replace(BUILT, vmlinuz=Path("/image/2/vmlinuz"))),
        inputs(built=replace(BUILT, release="6.1.1")),
        inputs(qemu=replace(QEMU, digest="4")),
        inputs(qemu=replace(QEMU, sandbox=("-sandbox", "on"))),
        inputs(debug=layers),
        *(
            inputs(settings=replace(SETTINGS, **{name: value}))
            for name, value in {
                "rungs": select(["syscall"]), "ops": ["write"], "block_sizes": (8192,), "boots": 2,
                "machine": Machine(cmdline="quiet"), "fill": False, "coherent": False, "cpus": 2,
                "profile": True, "inline": True, "layers": layers, "model": True,
            }.items()
        ),
    ]  # fmt: skip
    other_programs = tmp_path / "init"
    other_programs.write_text("another")
    monkeypatch.setattr(known, "guest_program", lambda name, arch=None: other_programs)
    others.append(inputs())
    monkeypatch.setattr(known, "code_digest", lambda: "other code")
    others.append(inputs())
    monkeypatch.setattr(layers_, "_BUILT_IN", layers)
    others.append(inputs())
    keys = [str(one) for one in (usual, *others)]
    assert len(set(keys)) == len(keys)


def test_what_is_kept_is_read(tmp_path: Path) -> None:
    cache, key = Cache(tmp_path), inputs()
    assert known.read(cache, key) is None
    whole = result.make(a_result([a_record("a kernel", "syscall", "none", 0)]))
    made = Known(whole.kernels[0], whole.results, ["left out"])
    known.keep(cache, key, made)
    assert known.read(Cache(tmp_path), key) == made
    assert known.read(cache, inputs(name="another")) is None


def test_what_is_known_is_read_without_slow_libraries(tmp_path: Path) -> None:
    """known.read() does not import cattrs. The import took a quarter of the command's time."""
    whole = result.make(a_result([a_record("a kernel", "syscall", "none", 0)]))
    known.keep(Cache(tmp_path), {"a": 1}, Known(whole.kernels[0], whole.results, []))
    code = (
        "import sys; from pathlib import Path; from iopath.base.cache import Cache\n"
        "from iopath.measure import known\n"
        f"found = known.read(Cache(Path({str(tmp_path)!r})), {{'a': 1}})\n"
        "print(found.records[0].rung, 'cattrs' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "syscall False\n"
