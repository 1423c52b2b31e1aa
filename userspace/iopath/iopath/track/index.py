# SPDX-License-Identifier: GPL-2.0
"""The index of iopath track: the figures and steps of all its files, in SQLite.

It holds nothing that is not in the files, and is made again from them if it is missing. A step is
the difference of two neighbours on a line, by the rule of compare. The first kernel of a line is
compared with one before it in another line.

Neighbours are compared by their own results. If these were measured by different versions of QEMU
or of iopath, the two kernels are compared by the result of their pair (store.py).
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from iopath.base import files
from iopath.base.cache import digest_file, digest_of
from iopath.compare import compare, exact, labels, shared_writes
from iopath.compare.changes import ExactChange, ExactComparison
from iopath.compare.shared_writes import SharedWrites
from iopath.results import result
from iopath.results.layers import Layers
from iopath.results.metrics import INSTRUCTIONS
from iopath.results.result import ExactResult, Key, size_text, title
from iopath.results.syscalls import CALL, JUDGED
from iopath.show import page as webpage
from iopath.show import sharing_tables, texts
from iopath.track import store
from iopath.track.store import Point
from iopath.track.watches import Config

NAME = "index.sqlite"
STEPS = "steps"  # the folder of the pages
_SCHEMA = 4
_FUNCTIONS = 3  # named in a change

# Fields of results, besides QEMU, that differ if the instrument does.
_INSTRUMENT = {
    "machine": "another machine",
    "programs": "other programs of guests",
    "source": "another source of modules",
}

_TABLES = """
create table seen (file text primary key, size integer, time integer, digest text);
create table kernel (file text primary key, digest text, instrument text, point text);
create table figure (
    file text, rung text, op text, block_size integer, instructions real, spread real,
    primary key (file, rung, op, block_size)
);
create table pair (
    before text, after text, digests text, apart integer, differing text, labels text,
    breaks text, wanted integer,
    primary key (before, after)
);
create table change (
    before text, after text, number integer, rung text, op text, block_size integer,
    difference real, percent real, verdict text, mover text, functions text,
    primary key (before, after, number)
);
"""


def rung_title(key: Key) -> str:
    """A rung and its operation, and its block size if that is not the usual one."""
    rung, op, size = key
    return title(rung, op) + (f" {size_text(size)}" if size not in (0, 4096) else "")


def ordered(keys: Iterable[Key], config: Config) -> list[Key]:
    """Rungs in the order in which they are measured, others behind them."""
    place = {rung.name: number for number, rung in enumerate(config.rungs)}
    return sorted(keys, key=lambda key: (key[2] or 4096, place.get(key[0], len(place)), key))


@dataclass(frozen=True)
class StepChange:
    """How a rung differs in a step. It is *unsure* if there were too few boots to know the
    noise."""

    key: Key
    difference: float
    percent: float | None
    verdict: str
    mover: str
    functions: str

    @property
    def unsure(self) -> bool:
        return self.verdict == "unknown"

    @property
    def title(self) -> str:
        return rung_title(self.key)

    @property
    def text(self) -> str:
        """The difference, with a question mark if it may be noise."""
        return texts.change(self.difference, self.percent) + "?" * self.unsure


@dataclass
class Step:
    """Two neighbours on a line that differ. If they cannot be compared, *differing* says what
    differs besides the kernel. *apart* is whether their own results cannot be compared. *labels*
    says what else may account for the changes. *breaks* names what else changes here: the compiler,
    or the instrument. *wanted* is how many boots of both would decide what is undecided."""

    before: Point
    after: Point
    differing: list[str]
    labels: list[str]
    changes: list[StepChange] = field(default_factory=list)
    apart: bool = False
    breaks: list[str] = field(default_factory=list)
    wanted: int = 0

    @property
    def points(self) -> tuple[Point, Point]:
        return self.before, self.after

    @property
    def page(self) -> Path:
        """The page that says where the changes come from, in the folder of the site."""
        return Path(STEPS, self.after.watch, f"{self.before.title}..{self.after.title}.html")

    @property
    def name(self) -> str:
        return f"{self.after.watch}/{self.before.title}..{self.after.title}"


class Index:
    """The index of the site in *folder*."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._database = self._open()
        try:
            (version,) = self._database.execute("pragma user_version").fetchone()
        except sqlite3.DatabaseError:  # it is damaged
            version = 0
        if version != _SCHEMA:
            self._database.close()
            (folder / NAME).unlink()
            self._database = self._open()
            self._database.executescript(f"{_TABLES} pragma user_version = {_SCHEMA};")
        self._database.execute("pragma synchronous = off")  # it can be made again

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self._folder / NAME, isolation_level=None)

    def close(self) -> None:
        self._database.close()

    # Files.

    def refresh(self) -> None:
        """Read the files that are new or have changed."""
        known = {
            file: (size, time, digest)
            for file, size, time, digest in self._database.execute("select * from seen")
        }
        found = set()
        of_points, of_pairs = set(store.points(self._folder)), set(store.pairs(self._folder))
        for path in sorted(of_points | of_pairs):
            name = str(path.relative_to(self._folder))
            found.add(name)
            status = path.stat()
            stamp = (status.st_size, status.st_mtime_ns)
            if name in known and known[name][:2] == stamp:
                continue
            digest = digest_file(path)
            self._begin()
            if path in of_points and (name not in known or known[name][2] != digest):
                self._read(name, path, digest)
            self._database.execute("replace into seen values (?, ?, ?, ?)", (name, *stamp, digest))
            self._database.execute("commit")
        for name in known.keys() - found:
            self._begin()
            self._forget(name)
            self._database.execute("delete from seen where file = ?", (name,))
            for table in ("pair", "change"):
                self._database.execute(f"delete from {table} where ? in (before, after)", (name,))
            self._database.execute("commit")

    def _begin(self) -> None:
        self._database.execute("begin immediate")

    def _forget(self, name: str) -> None:
        for table in ("kernel", "figure"):
            self._database.execute(f"delete from {table} where file = ?", (name,))

    def _read(self, name: str, path: Path, digest: str) -> None:
        self._forget(name)
        point, data = store.read(path)
        text = json.dumps(vars(point), sort_keys=True)
        instrument = digest_of({part: data.get(part) for part in exact.SAME})
        row = (name, digest, instrument, text)
        self._database.execute("insert into kernel values (?, ?, ?, ?)", row)
        self._database.executemany(
            "insert into figure values (?, ?, ?, ?, ?, ?)",
            [
                (name, one["rung"], one["op"], one["block_size"], one["instructions_per_io"],
                 max(one["spread"], one["boot_spread"]))
                for one in data.get("results", ())
                if one.get("calls", {}).get("kind", CALL) in JUDGED
            ],
        )  # fmt: skip

    def points(self) -> dict[str, list[Point]]:
        """The points of each watch, in their order."""
        found: dict[str, list[Point]] = {}
        for (text,) in self._database.execute("select point from kernel"):
            point = Point(**json.loads(text))
            found.setdefault(point.watch, []).append(point)
        return {name: sorted(found[name], key=lambda point: point.order) for name in sorted(found)}

    def figures(self, point: Point) -> dict[Key, tuple[float, float]]:
        """The figure of each rung, or of a program and its system calls, and its spread."""
        rows = self._database.execute("select * from figure where file = ?", (str(point.path),))
        return {(rung, op, size): (count, spread) for _, rung, op, size, count, spread in rows}

    def instruments(self) -> dict[Path, str]:
        """What each point was measured with: a digest, by its file."""
        rows = self._database.execute("select file, instrument from kernel")
        return {Path(file): instrument for file, instrument in rows}

    # Steps.

    def compare(self, layers: Layers, say: Callable[[str], None]) -> None:
        """Compare neighbours that were not compared yet, and write the pages of steps."""
        digests = self._digests()
        known = {
            (before, after): found
            for before, after, found in self._database.execute(
                "select before, after, digests from pair"
            )
        }
        steps = {step.name for step in self.steps()}
        loaded: dict[Path, ExactResult] = {}
        wanted = set()
        for before, after in self._neighbours():
            pair = (str(before.path), str(after.path))
            wanted.add(pair)
            used = (*pair, str(store.pair(before, after).path))
            digest = " ".join(digests[file] for file in used if file in digests)
            step = Step(before, after, [], [])
            fresh = known.get(pair) == digest
            if fresh and (step.name not in steps or (self._folder / step.page).exists()):
                continue
            say(f"comparing {before.title} and {after.title}")
            loaded = {
                point.path: loaded.get(point.path) or self._load(point) for point in (before, after)
            }
            self._compare(step, digest, loaded, layers)
        for pair in known.keys() - wanted:
            self._drop(pair)
        self._remove_old_pages()

    def _digests(self) -> dict[str, str]:
        """The digest of each file."""
        return dict(self._database.execute("select file, digest from seen"))

    def _neighbours(self) -> Iterator[tuple[Point, Point]]:
        kept = self._digests()
        instruments = self.instruments()

        def alike(before: Point, after: Point) -> bool:
            one, two = (instruments[point.path] for point in (before, after))
            return one == two or str(store.pair(before, after).path) in kept

        for points in self.points().values():
            newest: dict[str, Point] = {}  # of each line
            measured = [point for point in points if not point.error]
            for number, point in enumerate(measured):
                before = newest.get(point.line) or _in_another_line(point, measured[:number], alike)
                if before:
                    yield before, point
                newest[point.line] = point

    def _load(self, point: Point) -> ExactResult:
        _, data = store.read(self._folder / point.path)
        return result.make(data)

    def _drop(self, pair: tuple[str, str]) -> None:
        for table in ("pair", "change"):
            self._database.execute(f"delete from {table} where before = ? and after = ?", pair)

    def _compare(
        self, step: Step, digests: str, loaded: Mapping[Path, ExactResult], layers: Layers
    ) -> None:
        parts = [(point.title, loaded[point.path]) for point in (step.before, step.after)]
        whole = compare.join(parts)
        step.differing = compare.incomparable(whole, parts)
        step.apart = bool(step.differing)
        path = self._folder / store.pair(step.before, step.after).path
        if step.apart and path.exists():
            pair, data = store.read_pair(path)
            if pair.error:
                step.differing.insert(0, pair.error)
            else:
                whole = result.make(data)
                both = [(title, result.alone(whole, title)) for title, _ in parts]
                step.differing = compare.incomparable(whole, both)
        comparison = compare.compare(whole, layers)
        step.labels = comparison.brief
        step.breaks = list(_breaks(*loaded.values()))
        if not step.differing:
            step.wanted = max(comparison.wanted.values(), default=0)
            step.changes = list(changes(comparison, shared_writes.written(whole)))
        if step.changes:
            path = self._folder / step.page
            path.parent.mkdir(parents=True, exist_ok=True)
            files.write(path, webpage.render(whole, comparison, layers).encode())
        names = (str(step.before.path), str(step.after.path))
        self._begin()
        self._drop(names)
        self._database.execute(
            "insert into pair values (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *names,
                digests,
                step.apart,
                *map(json.dumps, (step.differing, step.labels, step.breaks)),
                step.wanted,
            ),
        )
        self._database.executemany(
            "insert into change values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (*names, number, *one.key, one.difference, one.percent, one.verdict, one.mover,
                 one.functions)
                for number, one in enumerate(step.changes)
            ],
        )  # fmt: skip
        self._database.execute("commit")

    def _remove_old_pages(self) -> None:
        wanted = {self._folder / step.page for step in self.steps()}
        for path in (self._folder / STEPS).glob("*/*.html"):
            if path not in wanted:
                path.unlink()

    def steps(self) -> list[Step]:
        """The pairs that differ, or that cannot be compared, in the order of their points."""
        return [step for step in self.links() if step.changes or step.differing]

    def links(self) -> list[Step]:
        """All pairs that are compared, in the order of their points: a kernel has one before it,
        except the first of a watch."""
        points = {
            str(point.path): (number, point)
            for number, point in enumerate(p for points in self.points().values() for p in points)
        }
        found = {}
        for row in self._database.execute("select * from pair"):
            before, after, _, apart, *texts, wanted = row
            differing, told, breaks = map(json.loads, texts)
            found[before, after] = Step(
                points[before][1], points[after][1], differing, told,
                apart=bool(apart), breaks=breaks, wanted=wanted,
            )  # fmt: skip
        for before, after, _, rung, op, size, *rest in self._database.execute(
            "select * from change order by before, after, number"
        ):
            found[before, after].changes.append(StepChange((rung, op, size), *rest))
        return sorted(found.values(), key=lambda step: points[str(step.after.path)][0])


def _breaks(before: ExactResult, after: ExactResult) -> Iterator[str]:
    """What changed besides the kernel: the compiler, or the instrument. Two builds of one version
    of a compiler count as the same."""
    (one, old), (two, new) = (
        labels.version_of(result.kernels[0].compiler) for result in (before, after)
    )
    if one != two:
        yield f"{one} {old} to {two} {new}" if old and new else "another compiler"
    elif old != new:
        majors = [version.partition(".")[0] for version in (old, new)]
        old, new = (old, new) if majors[0] == majors[1] else majors
        yield f"{one} {old} to {new}"
    if before.qemu.version != after.qemu.version:
        yield f"QEMU {before.qemu.version} to {after.qemu.version}"
    elif before.qemu != after.qemu:
        yield f"another build of QEMU {after.qemu.version}"
    for name, text in _INSTRUMENT.items():
        if getattr(before, name) != getattr(after, name):
            yield text


def _in_another_line(
    point: Point, earlier: Sequence[Point], alike: Callable[[Point, Point], bool]
) -> Point | None:
    """What the first kernel of a line is compared with, among those before it: the newest that it
    can be compared with, or else the newest. So it is judged once, although the other line goes
    on."""
    same = [one for one in earlier if one.arch == point.arch]
    return next((one for one in reversed(same) if alike(one, point)), same[-1] if same else None)


def opened(folder: Path) -> closing:
    """The index of a folder, for a with statement."""
    return closing(Index(folder))


def changes(
    comparison: ExactComparison, shared: Mapping[Key, Sequence[SharedWrites]]
) -> Iterator[StepChange]:
    """The rungs that differ, those that matter most first, then those of which CPUs *shared* more
    or less. If the noise is not known, differences within the resolution of the clock are left
    out."""
    (name,) = comparison.others
    ranked = comparison.ranked(name)
    others = [rung for rung in comparison.rungs if rung.key in shared and rung not in ranked]
    for rung in (*ranked, *others):
        found = rung.differences[name]
        lines = shared.get(rung.key, ())
        least = INSTRUCTIONS.resolution
        small = abs(found.difference) <= least and not found.moved
        if not lines and found.verdict == "unknown" and small:
            continue
        if not (found.differs or found.telling or lines):
            continue  # what is found in one kernel alone
        yield StepChange(
            rung.key, round(found.difference, 4), found.percent, found.verdict,
            texts.top_mover(found), "; ".join(filter(None, [_functions(found), *_shares(lines)])),
        )  # fmt: skip


def _shares(found: Sequence[SharedWrites]) -> Iterator[str]:
    """What CPUs write more or less to lines that they share."""
    for one in found:
        writes, locked = sharing_tables.writes(one)
        lines = sharing_tables.changed_lines(one, _FUNCTIONS)
        text = f"CPUs share {', '.join(one.arrangements)}: writes {writes}, locked {locked}"
        yield f"{text}: {lines}" if lines else text


def _functions(change: ExactChange) -> str:
    return ", ".join(
        f"{part.name} {texts.signed(part.difference)}{f' ({part.note})' if part.note else ''}"
        for part in change.functions[:_FUNCTIONS]
    )
