# SPDX-License-Identifier: GPL-2.0
"""What features cost: the table, what is wrong with one, and real costs in guests."""

import json
import re
from pathlib import Path

import pytest

from helpers.command import KERNEL, Command
from helpers.compiled import compiled_bpf
from iopath.measure.session import Session
from iopath.rungs import feature as features

BASE, KNOWN = features.load()


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.guest
def test_an_iommu(iopath: Command, tmp_path: Path) -> None:
    """A machine has the devices of a feature; mapping costs something in its own layer."""
    out = tmp_path / "out.json"
    done = iopath.run(
        "features", KERNEL, "--feature", "iommu.strict", "--boots", "1", "--quiet", "--json", out
    )
    assert done.returncode == 0, done.stderr
    (cost,) = (
        cost
        for cost in json.loads(out.read_text())["features"]
        if cost["feature"] == "iommu.strict"
    )
    assert 1500 < cost["difference"] < 4000
    layers = {part["name"]: part["layer"] for part in cost["functions"]}
    assert layers["qi_submit_sync"] == "DMA mapping"


@pytest.mark.guest
def test_a_tracer(iopath: Command, tmp_path: Path) -> None:
    """Tracing has a layer: the ring buffer's functions are not the page cache's."""
    out = tmp_path / "out.json"
    words = ("--feature", "trace.block", "--boots", "1", "--quiet", "--json", out)
    done = iopath.run("features", KERNEL, *words)
    assert done.returncode == 0, done.stderr
    costs = json.loads(out.read_text())["features"]
    (cost,) = (cost for cost in costs if cost["feature"] == "trace.block")
    layers = {part["name"]: part["layer"] for part in cost["functions"]}
    assert layers["ring_buffer_lock_reserve"] == "tracing"
    assert not {"page cache", "other"} & set(layers.values())


@pytest.mark.guest
def test_costs(iopath: Command, tmp_path: Path) -> None:
    """Nothing costs nothing; statistics cost something in their functions; two features together
    cost about their sum; an end by a timer's interrupt is counted without the time of waiting; a
    feature that has no effect, and one that fails, are errors."""
    path = write(
        tmp_path / "mine.toml",
        """
[[feature]]
name = "no.effect"
shows = ["no_such_function"]

[[feature]]
name = "no.sign"

[[feature]]
name = "no.file"
setup = ["write /no/such/file 1"]

[[feature]]
name = "not.so"
expect = ["/proc/version Hurd"]

[[feature]]
name = "too.new"
since = "99.0"

[[feature]]
name = "no.config"
needs = ["CONFIG_NO_SUCH"]
""",
    )
    out, text = tmp_path / "out.json", tmp_path / "out.md"
    names = ["iostats", "rotational", "end.timer", "no.*", "not.so", "too.new"]
    words = [word for name in names for word in ("--feature", name)]
    done = iopath.run(
        "features", KERNEL, "--features", path, *words, "--boots", "1", "--quiet",
        "--with", "iostats,rotational", "--json", out, "--markdown", text,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "iopath: not measured: no.effect, no.sign, no.file, not.so\n"
    written = json.loads(out.read_text())
    assert written["base"]["cmdline"] == BASE.cmdline
    found = {cost["feature"]: cost for cost in written["features"]}
    assert all(cost["rung"] == "mq.pread" and cost["op"] == "read" for cost in found.values())
    assert abs(found["nothing"]["difference"]) <= 0.05
    assert 100 < found["iostats"]["difference"] < 500
    assert "update_io_ticks" in {part["name"] for part in found["iostats"]["functions"]}
    assert 4000 < found["end.timer"]["difference"] < 9000  # the timer alone runs for 10,000
    assert {"hrtimer_interrupt", "__schedule"} <= {
        part["name"] for part in found["end.timer"]["functions"]
    }
    both = found["iostats+rotational"]["difference"]
    assert abs(both - found["iostats"]["difference"] - found["rotational"]["difference"]) <= 20
    assert found["no.effect"]["error"] == (
        "it did not take effect: no_such_function is not executed"
    )
    assert found["no.sign"]["error"] == (
        "it did not take effect: the path is the same as without it"
    )
    assert "/no/such/file" in found["no.file"]["error"]
    assert "instead of Hurd" in found["not.so"]["error"]
    assert found["too.new"]["missing"] == "kernels from 99.0 on have it"
    assert found["no.config"]["missing"] == "the kernel has no CONFIG_NO_SUCH"
    assert "| iostats | +" in text.read_text()


@pytest.mark.guest
def test_a_program(iopath: Command, tmp_path: Path) -> None:
    """The statistics of a disk cost each read of dd, and nothing of a call without I/O."""
    out = tmp_path / "out.json"
    done = iopath.run(
        "features", KERNEL, "--feature", "iostats.bio", "--boots", "1", "--quiet", "--json", out,
        "--", "dd", "if=/dev/blknull0", "of=/dev/null", "bs=4k", "count=4", "iflag=direct",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    written = json.loads(out.read_text())
    assert written["command"].startswith("dd if=/dev/blknull0")
    found = {(cost["feature"], cost["op"]): cost for cost in written["features"]}
    assert 100 < found["iostats.bio", "read"]["difference"] < 500
    assert abs(found["nothing", "read"]["difference"]) <= 0.05
    assert abs(found["iostats.bio", "lseek"]["difference"]) <= 0.05
    assert "lseek" in re.findall(r"nothing is changed: (.*)", done.stdout)[0]
    functions = {part["name"] for part in found["iostats.bio", "read"]["functions"]}
    assert functions & {"bdev_start_io_acct", "bio_start_io_acct", "update_io_ticks"}


@pytest.mark.guest
def test_layers(iopath: Command, tmp_path: Path) -> None:
    """The cost of a file system is in its functions, and the driver does no more than without
    it."""
    out, drawn = tmp_path / "out.json", tmp_path / "out.svg"
    done = iopath.run(
        "features", KERNEL, "--feature", "ext4.pread", "--feature", "dm-linear.pread",
        "--boots", "1", "--quiet", "--json", out, "--svg", drawn,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "layers on dio.pread write" in done.stdout
    found = [cost for cost in json.loads(out.read_text())["features"] if cost.get("layer")]
    assert {(cost["feature"], cost["rung"], cost["op"]) for cost in found} == {
        (layer, base, op)
        for layer, base in (("ext4.pread", "bare.pread"), ("dm-linear.pread", "dio.pread"))
        for op in ("read", "write")
    }
    assert {">layers on bare.pread write<", ">ext4.pread<"} <= set(
        re.findall(r">[^<\n]+<", drawn.read_text())
    )
    for cost in found:
        parts = {part["name"]: part for part in cost["functions"]}
        shown = "ext4_file_read_iter" if cost["op"] == "read" else "ext4_file_write_iter"
        assert ("dm_submit_bio" if "dm" in cost["feature"] else shown) in {
            name.partition(" ")[0] for name in parts
        }
        assert sum(p["difference"] for p in parts.values() if p["layer"] == "driver") == 0
        assert 500 < cost["difference"] < 5000


COUNT = '{ __sync_fetch_and_add(&seen, 1); asm volatile(%s ::: "r1"); return %d; }\n'
HOOKS = {
    "tracepoint": ("tracepoint/block/block_bio_queue", '""'),
    "raw": ("raw_tp/block_bio_queue", '""'),
    "longer": ("raw_tp/block_bio_queue", "TWENTY"),
    "function": ("fentry/submit_bio", '""'),
    "group": ("cgroup/dev", '""'),
    "elsewhere": ("fentry/vfs_mkdir", '""'),
}


ALLOWS = "group"  # by returning 1; others must return 0


@pytest.fixture
def objects(session: Session, tmp_path: Path) -> dict[str, Path]:
    """Objects of eBPF that count how often they are executed."""
    return {
        name: compiled_bpf(
            session,
            tmp_path,
            name,
            f'SEC("{hook}") int count(void *context) {COUNT % (more, name == ALLOWS)}',
        )
        for name, (hook, more) in HOOKS.items()
    }


def own(cost: dict) -> float:
    """What the program itself executes."""
    return sum(one["difference"] for one in cost["functions"] if one["layer"] == "eBPF program")


@pytest.mark.guest
def test_ebpf(iopath: Command, objects: dict[str, Path], tmp_path: Path) -> None:
    """A program's own instructions are apart, and exact: 20 more are 20. One that no I/O executes
    is an error, as is one that cannot be loaded."""
    out = tmp_path / "out.json"
    broken = tmp_path / "broken.o"
    broken.write_bytes(
        objects["raw"].read_bytes().replace(b"block_bio_queue\0", b"block_no_queues\0")
    )
    given = [*(objects[name] for name in HOOKS if name != "group"), broken]
    words = [word for path in given for word in ("--bpf", path)]
    done = iopath.run(
        "features", "debian:7.2", *words, "--op", "read", "--boots", "1", "--quiet", "--json", out
    )
    assert (done.returncode, done.stderr) == (1, "iopath: not measured: elsewhere.o, broken.o\n")
    found = {cost["feature"]: cost for cost in json.loads(out.read_text())["features"]}
    assert 5 <= own(found["raw.o"]) < 15
    assert own(found["longer.o"]) - own(found["raw.o"]) == pytest.approx(20, abs=0.01)
    more = found["longer.o"]["difference"] - found["raw.o"]["difference"]
    assert more == pytest.approx(20, abs=2)  # pages are counted in batches
    for name, caller in (("tracepoint.o", "trace_call_bpf"), ("function.o", "bpf_trampoline_")):
        assert 5 <= own(found[name]) < found[name]["difference"]
        functions = {part["name"]: part["layer"] for part in found[name]["functions"]}
        assert functions["bpf_prog_count [bpf]"] == "eBPF program"
        (layer,) = {functions[other] for other in functions if other.startswith(caller)}
        assert layer == "tracing"
    assert found["elsewhere.o"]["error"] == (
        "it did not take effect: bpf_prog_count* is not executed"
    )
    assert "/bin/attach ended with status 1" in found["broken.o"]["error"]
    log = Path(re.findall(r"console: ([^)]*)", found["broken.o"]["error"])[0])
    assert "attach: cannot attach count" in log.read_text()


@pytest.mark.guest
def test_ebpf_of_a_control_group(iopath: Command, objects: dict[str, Path], tmp_path: Path) -> None:
    """It costs the system calls that ask it, and no other."""
    out = tmp_path / "out.json"
    done = iopath.run(
        "features", "debian:7.2", "--bpf", objects["group"], "--boots", "1", "--quiet", "--json",
        out, "--", "dd", "if=/dev/blknull0", "of=/dev/null", "bs=4k", "count=4", "iflag=direct",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    found = {
        cost["op"]: cost
        for cost in json.loads(out.read_text())["features"]
        if cost["feature"] == "group.o"
    }
    assert own(found["openat"]) > 0
    assert own(found["read"]) == 0
