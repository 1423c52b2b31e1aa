# SPDX-License-Identifier: GPL-2.0
"""How the cost of features is measured."""

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from helpers.counted import a_boot as a_run
from helpers.counted import a_program
from helpers.examples import a_result
from helpers.pairs import PLAIN as BEFORE
from helpers.pairs import profiled, row
from helpers.shared_lines import a_boot, a_line, merged
from iopath.base.arch import X86_64
from iopath.base.errors import IopathError, Lacking, Unreachable, UsageError
from iopath.compare import noise
from iopath.compare.changes import FunctionChange
from iopath.guest.machine import Machine
from iopath.measure.measurement import Measurement
from iopath.results.layers import Layers
from iopath.results.result import Result, parse
from iopath.rungs import feature
from iopath.rungs.builtin import DEVICES, MOUNTS
from iopath.rungs.feature import PLAIN, Base, Feature
from iopath.rungs.program import Program
from iopath.rungs.runs import Settings
from iopath.studies import featurechart, features, featuretable
from iopath.studies.featurereport import FeaturesReport
from iopath.studies.features import Cost, FeatureStudy

BASE = Base("quiet", ("dio.pread",), ("read",), 100)
BOOTS = 7
SETTINGS = Settings([], ops=(), machine=Machine(cmdline="quiet", seed=5), boots=BOOTS, profile=True)
ONE = Feature("one", cmdline="one=1", shows=("one",))
TWO = Feature("two", cmdline="two=1", shows=("two",))
SHORT = Feature("short", ios=10, shows=("one",))
AFTER = [row("one", 507.0, locked=2.0), *BEFORE[1:]]


def test_command_line() -> None:
    """A feature's mitigations replace the base's."""
    join = features._command_line
    assert join("a mitigations=off b", "mitigations=auto pti=on") == "a b mitigations=auto pti=on"
    assert join("a mitigations=off", "") == "a mitigations=off"


class Answers:
    """A stand-in for a session: known results, or errors, by the title of a guest. The last
    measurement is done first."""

    def __init__(self, **errors: IopathError) -> None:
        self._errors = errors
        self.asked: list[Measurement] = []
        self.said: list[str] = []
        self.reporter = SimpleNamespace(note=self.said.append)

    def measure_each(
        self, wanted: Sequence[Measurement]
    ) -> Iterator[tuple[Measurement, Result | IopathError]]:
        self.asked += wanted
        for one in reversed(wanted):
            yield one, self._errors.get(name_of(one)) or self._result(one)

    def _result(self, one: Measurement) -> Result:
        functions = AFTER if name_of(one) in ("one", "two", "short") else BEFORE
        return parse(a_result([profiled(one.name, functions)]))


def name_of(one: Measurement) -> str:
    """A feature, or "base"."""
    return one.title.split(", ")[1].split()[0]


def measured(
    session: Answers, *some: Feature, kernels: Sequence[str] = ("debian:6.1",)
) -> list[Cost]:
    study = FeatureStudy(session, BASE, SETTINGS, Layers())  # type: ignore[arg-type]
    return study.measure(kernels, some, ())


def test_costs() -> None:
    """Features are in the order of the command line, by kernel, whatever is done first."""
    costs = measured(Answers(), PLAIN, ONE, TWO, kernels=("debian:6.1", "debian:7.2"))
    assert [(cost.kernel, cost.feature, cost.difference, cost.error) for cost in costs] == [
        (kernel, feature, difference, "")
        for kernel in ("debian:6.1", "debian:7.2")
        for feature, difference in (("nothing", 0.0), ("one", 7.0), ("two", 7.0))
    ]


def test_a_base_is_shared() -> None:
    """Two features have one base, with its seeds; a round of another length has another base. The
    base that is measured again has seeds that no boot of the base had."""
    session = Answers()
    measured(session, PLAIN, ONE, TWO, SHORT)
    assert [one.title for one in session.asked] == [
        f"debian:6.1, {name}, dio.pread read"
        for name in ("base of 100 I/Os", "base of 10 I/Os", "nothing", "one", "two", "short")
    ]
    rounds = [one.settings.rungs[0].round_ios for one in session.asked]
    assert rounds == [100, 10, 100, 100, 100, 10]
    seeds = [one.settings.machine.seed for one in session.asked]
    assert seeds == [5, 5, 5 + BOOTS, 5, 5, 5]
    lines = [one.settings.machine.cmdline for one in session.asked]
    assert lines == ["quiet", "quiet", "quiet", "quiet one=1", "quiet two=1", "quiet"]


def test_undecided_features_are_booted_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """With their base, and the base that is measured again with other seeds."""
    monkeypatch.setattr(noise, "OFTEN", BOOTS + 1)
    session = Answers()
    measured(session, PLAIN, ONE)
    base, nothing, one = "base of 100 I/Os", "nothing", "one"
    asked = [(one.title.split(", ")[1], one.settings.boots) for one in session.asked]
    assert asked == [(name, boots) for boots in (BOOTS, BOOTS + 1) for name in (base, nothing, one)]
    assert session.said == [f"booting {BOOTS + 1} times: 2 costs are undecided"]


def test_an_error_is_in_its_cost() -> None:
    """The other costs are known."""
    session = Answers(one=IopathError("the guest\nfailed"), short=Lacking("it has no CONFIG_X"))
    costs = measured(session, PLAIN, ONE, TWO, SHORT)
    assert [(cost.feature, cost.error, cost.missing, cost.difference) for cost in costs] == [
        ("nothing", "", "", 0.0),
        ("one", "the guest failed", "", 0.0),
        ("two", "", "", 7.0),
        ("short", "", "it has no CONFIG_X", 0.0),
    ]


def test_without_a_base_there_is_no_cost() -> None:
    """The error is that of the base, of the same type. If the base lacks something, the features
    lack it."""
    for kind in (IopathError, Unreachable):
        with pytest.raises(kind, match=r"^debian:6\.1: it failed$") as error:
            measured(Answers(base=kind("it failed")), PLAIN, ONE)
        assert error.type is kind
    costs = measured(Answers(base=Lacking("it has no CONFIG_X")), PLAIN, ONE)
    assert [cost.missing for cost in costs] == 2 * ["it has no CONFIG_X"]


def test_what_does_not_take_effect() -> None:
    unseen, same = replace(ONE, shows=("ghost",)), Feature("same")
    assert [cost.error for cost in measured(Answers(), unseen, same)] == [
        "it did not take effect: ghost is not executed",
        "it did not take effect: the path is the same as without it",
    ]


class OfAProgram(Answers):
    """The same of a program: with "one" each of its reads takes seven instructions more."""

    def _result(self, one: Measurement) -> Result:
        more = 7 * (name_of(one) == "one")
        boot = a_run(100 + more)
        return a_program({one.name: [boot] * one.settings.boots})


def test_a_program() -> None:
    """The whole and the system calls have costs, in this order. The program runs on the device with
    the feature. What does not lengthen a program is missing there, and no error."""
    session = OfAProgram()
    rung = DEVICES["null"]
    program = Program(X86_64, "/bin/dd", ["bs=4k"], {}, rung, False, 10)
    settings = replace(SETTINGS, rungs=[rung], ops=("read",), program=program)
    study = FeatureStudy(session, BASE, settings, Layers())  # type: ignore[arg-type]
    one = Feature("one", cmdline="one=1", setup=("write /sys/block/{disk}/queue/x 1",))
    costs = study.measure(["debian:6.1"], [PLAIN, one, TWO], ())
    found = [(cost.feature, cost.title, cost.difference, cost.total) for cost in costs]
    assert found == [
        ("nothing", "the whole", 0.0, None), ("nothing", "I/O calls", 0.0, None),
        ("nothing", "read", 0.0, None),
        ("one", "the whole", 70.0, None), ("one", "I/O calls", 70.0, None),
        ("one", "read", 7.0, None),
        ("two", "the whole", 0.0, 0.0),
    ]  # fmt: skip
    assert costs[-1].missing == "it did not take effect: two is not executed"
    assert {part.name for part in costs[4].functions} == {"vfs_read"}
    asked = {name_of(one): one.settings for one in session.asked}
    assert asked["one"].program
    assert asked["one"].program.rung.begin[-1] == "write /sys/block/blknull0/queue/x 1"
    console = Console(width=100, record=True, file=io.StringIO())
    featuretable.show(BASE, costs, console, "dd bs=4k")
    text = console.export_text()
    assert "program: dd bs=4k" in text
    assert "instructions each time" in text
    assert "nothing is changed" not in text
    featuretable.show(BASE, costs[:2], console, "dd bs=4k")
    assert "nothing is changed: the whole, I/O calls" in console.export_text()
    markdown = featuretable.markdown(BASE, costs, "dd bs=4k")
    assert "## the whole" in markdown
    assert "| one | +70.00 |" in markdown
    figures = list(FeaturesReport(BASE, costs).figures())
    assert {figure.name for figure in figures} == {
        f"{part} with {name}"
        for part in ("the whole", "I/O calls", "read")
        for name in ("nothing", "one")
    }
    assert features.dump(BASE, costs, "dd bs=4k")["command"] == "dd bs=4k"


def test_features_that_a_program_can_have() -> None:
    """Not those of ioloop's options, of layers and of other devices."""
    base, known = feature.load()
    found = {
        name: {one.name for one in known if one.suits(rung, base)}
        for name, rung in (DEVICES | MOUNTS).items()
    }
    assert {"audit", "cgroup", "trace.block"} <= set.intersection(*found.values())
    assert not set.union(*found.values()) & {"hipri", "vector", "ext4.pread", "end.timer"}
    assert ("iostats.bio" in found["null"], "iostats" in found["null"]) == (True, False)
    assert ("iostats.bio" in found["mq"], "iostats" in found["mq"]) == (False, True)
    assert "iommu.strict" in found["nvme"] - found["mq"]


# How it is shown.


def a_cost(feature: str, difference: float, **fields: Any) -> Cost:  # noqa: ANN401
    made = {"kernel": "debian:6.1", "about": "", "rung": "mq.pread", "op": "read", "base": 4000.0}
    return Cost(feature=feature, difference=difference, **{**made, **fields})


COSTS = [
    a_cost("ftrace", 58000.0, tracer=True),
    a_cost("ftrace", 60000.0, tracer=True, kernel="debian:7.2"),
    a_cost("ext4.pread", 1700.0, rung="bare.pread", layer=True),
    a_cost("iostats", 191.0),
    a_cost("iostats", -20.0, kernel="debian:7.2"),
    a_cost("psi", 2.0),
    a_cost("bfq", 9185.0),
    a_cost("bfq", 0.0, kernel="debian:7.2", missing="it has no CONFIG_X"),
]


def test_production_before_layers_before_tracers() -> None:
    found = [
        (title, [row[0].feature for row in rows]) for title, _, rows in featuretable.groups(COSTS)
    ]
    assert found == [
        ("mq.pread read", ["bfq", "iostats", "psi"]),
        ("layers on bare.pread read", ["ext4.pread"]),
        ("tracers on mq.pread read", ["ftrace"]),
    ]
    tracers = {one.name for one in feature.load()[1] if one.tracer}
    assert {"ftrace.all", "kprobe", "blktrace", "trace.block"} < tracers
    assert not tracers & {"iostats", "bfq", "fanotify", "apparmor", "ext4.pread"}


def test_the_base_alone_is_not_shown() -> None:
    """It is shown beside features, or if nothing else was measured."""
    nothing = a_cost("nothing", 0.0)
    for costs, titles in (
        ([nothing, a_cost("ext4.pread", 5.0, layer=True)], ["layers on mq.pread read"]),
        ([nothing, a_cost("bfq", 5.0)], ["mq.pread read"]),
        ([nothing], ["mq.pread read"]),
    ):
        assert [title for title, _, _ in featuretable.groups(costs)] == titles


def test_a_family_is_suggested() -> None:
    with pytest.raises(UsageError, match=r"unknown feature 'ext4': did you mean 'ext4\.\*'\?"):
        feature.choose(feature.load()[1], ["ext4"])


def test_a_switch_of_tasks_is_the_cause() -> None:
    """The layer is named with what the kernel does, instead of its functions."""
    some = [
        FunctionChange(
            name=name, layer=layer, before=0.0, after=by, difference=by, counts={}, note="new"
        )
        for name, layer, by in (("a", "scheduling", 70.0), ("b", "VFS", 30.0))
    ]
    cost = a_cost("x", 100.0, functions=some, cause="switches to a worker")
    assert featuretable.functions(cost) == [
        "switches to a worker: scheduling +70.00", "VFS +30.00: b +30.00", "(100 % shown)",
    ]  # fmt: skip


def test_functions_by_layer() -> None:
    """The largest layers with their largest functions, and their share: 10 + 6 + 4 + 3 of 10 + 6 +
    2 + 4 + 3 + 1."""
    parts = [
        ("a", "VFS", 10.0), ("b", "VFS", -6.0), ("c", "VFS", 2.0), ("d", "time", 4.0),
        ("e", "security", 3.0), ("f", "driver", 1.0),
    ]  # fmt: skip
    some = [
        FunctionChange(
            name=name, layer=layer, before=10.0, after=10.0 + by, difference=by, counts={}, note=""
        )
        for name, layer, by in parts
    ]
    text = featuretable.functions(a_cost("x", 14.0, functions=some))
    assert text == [
        "VFS +6.00: a +10.00, b -6.00",
        "time +4.00: d +4.00",
        "security +3.00: e +3.00",
        "(88 % shown)",
    ]
    assert featuretable.functions(a_cost("x", 0.0)) == []
    assert f"| {'; '.join(text)} |" in featuretable.markdown(
        BASE, [a_cost("x", 14.0, functions=some)]
    )


def test_chart() -> None:
    """One axis with a point for each kernel that has the feature, and all figures as text.
    Differences below ten instructions on each kernel are left out."""
    (axes,) = featurechart.chart(COSTS).axes
    texts = [text.get_text() for text in axes.texts]
    assert texts == [
        "6.1", "7.2",
        "mq.pread read", "bfq", "+9,185", "-", "iostats", "+191", "-20",
        "layers on bare.pread read", "ext4.pread", "+1,700", "-",
        "tracers on mq.pread read", "ftrace", "+58,000", "+60,000",
    ]  # fmt: skip
    points = [line.get_xdata()[0] for line in axes.get_lines() if line.get_marker() == "o"]
    assert points == [9185, 191, -20, 1700, 58000, 60000]
    low, high = axes.get_xlim()
    assert low < -20
    assert high > 60000
    assert axes.get_xlabel() == "instructions more per I/O"


def test_chart_of_a_program() -> None:
    """Its parts are in the place of rungs."""
    (axes,) = featurechart.chart([replace(a_cost("bfq", 14.0), rung="", op="read")]).axes
    assert [text.get_text() for text in axes.texts][1:] == ["read", "bfq", "+14"]
    assert axes.get_xlabel() == "instructions more each time"


class OnTwoCpus(Answers):
    """The same, but "one" writes to a line that both CPUs touch."""

    def _result(self, one: Measurement) -> Result:
        lines = [a_line("dd: struct deadline_data.lock", locked=True)]
        boots = [a_boot(lines if name_of(one) == "one" else [])] * BOOTS
        (record,) = a_result([profiled(one.name, AFTER if boots[0]["lines"] else BEFORE)])[
            "results"
        ]
        return parse(a_result([record | {"cpus": 2, "sharing": merged(boots, "dio.pread")}]))


def test_shared_lines_of_a_feature() -> None:
    """The table, Markdown and JSON have what a feature writes to lines that CPUs share."""
    costs = measured(OnTwoCpus(), PLAIN, ONE)
    row = ["one", "files", "+1.00", "+1.00", "new dd: struct deadline_data.lock: f"]
    assert f"| {' | '.join(row)} |" in featuretable.markdown(BASE, costs)
    console = Console(width=200, record=True, file=io.StringIO())
    featuretable.show(BASE, costs, console)
    assert row == re.split(r" {2,}", console.export_text().rstrip().splitlines()[-3])
    nothing, one = features.dump(BASE, costs)["features"]
    assert nothing["shared"] == []
    assert one["shared"][0]["locked"] == 1.0
    assert all(
        "shared" not in cost for cost in features.dump(BASE, measured(Answers(), ONE))["features"]
    )
