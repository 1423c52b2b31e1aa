# SPDX-License-Identifier: GPL-2.0
"""Find the kernel that changed a rung, or a program: among packages, or among commits.

Kernels are judged by the rule of compare: a kernel that is not different from the good end is good.
A kernel that cannot be built or measured is skipped, as git bisect does it.
"""

import re
import shutil
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from iopath.base.cache import Cache
from iopath.base.errors import IopathError, UsageError, did_you_mean
from iopath.compare import compare, exact, noise
from iopath.compare.changes import RungChange
from iopath.compare.compare import Compared
from iopath.kernels import gitrepo
from iopath.kernels.gitrepo import Repository, git
from iopath.measure.session import Session
from iopath.results import metrics, result
from iopath.results.layers import Layers
from iopath.results.metrics import INSTRUCTIONS, LONG_RUN, METRICS, SHARED_WRITES, Metric
from iopath.results.result import ExactRecord, Key, Result
from iopath.results.syscalls import CALL
from iopath.rungs.runs import Settings
from iopath.studies import boots

Say = Callable[[str], None]
# The metrics that --metric knows.
FOLLOWED = (*(metric.name for metric in METRICS), *(f"shared {kind}" for kind in SHARED_WRITES))


class Search:
    """The measurements of a rung, or of a program, in one search. It follows the *metric* of that
    name, or the part of the program; without one, that by which the ends differ."""

    def __init__(self, session: Session, settings: Settings, say: Say, metric: str = "") -> None:
        if not settings.program and metric and metric not in FOLLOWED:
            near = did_you_mean(metric, FOLLOWED) or f": it must be one of {', '.join(FOLLOWED)}"
            raise UsageError(f"--metric {metric}: no such metric{near}")
        if len(settings.rungs) != 1 or len(settings.block_sizes) != 1:
            raise UsageError("bisect looks at one rung and one block size: name it with --rung")
        if metric.startswith("shared ") and settings.cpus == 1:
            raise UsageError(f"--metric '{metric}': needs --cpus 2 or more")
        self._named = metric
        self._metric: Metric | None = None  # what is followed
        self._key: Key | None = None  # the part of a program that is
        self._kernels: dict[str, str] = {}  # by the names of results
        ops = settings.rungs[0].ops(settings.ops)[:1]
        self._settings = replace(settings, ops=ops, profile=True)
        self._session = session
        self._say = say

    def measure(self, kernel: str, name: str) -> Result:
        """The result for *kernel*, under *name*."""
        self._kernels[name] = kernel
        found = result.renamed(self._session.measure([kernel], self._settings), {kernel: name})
        first, record = found.results[0], self._followed(found)
        what = "instructions" if self._settings.program else "instructions per I/O"
        text = f"{name}: {first.instructions_per_io:,.2f} {what}"
        boots = self._metric.value(record) if self._metric else None
        if boots and (self._metric is not INSTRUCTIONS or record is not first):
            text += f"; {self._name}: {statistics.fmean(boots):,.2f}"
        self._say(text)
        return found

    def _followed(self, found: Result) -> ExactRecord:
        """The record that is followed."""
        if self._key is None:
            return found.results[0]
        row = next((row for row in found.rows() if row.key == self._key), None)
        return row.records[found.names[0]] if row else found.results[0].never(found.results[0])

    @property
    def _name(self) -> str:
        """What is followed, in words."""
        return self._key[1] if self._key else self._metric.name if self._metric else ""

    def _choose(self, good: Result, bad: Result) -> Key | None:
        """The part of a program that is followed: the one that is named, or the system call that
        changed most, if that is at least half of the change of the whole, or else the whole."""
        if not self._settings.program:
            return None
        found = exact.compare(compare.join([("good", good), ("bad", bad)]), Layers())
        (name,) = found.others
        judged = [rung for rung in found.rungs if rung.differences[name].gated]
        if self._named:
            names = [rung.op for rung in judged]
            if self._named not in names:
                near = did_you_mean(self._named, names) or f": it must be one of {', '.join(names)}"
                raise IopathError(
                    f"--metric {self._named}: the program has no such system call{near}"
                )
            return next(rung.key for rung in judged if rung.op == self._named)

        def size(rung: RungChange) -> float:
            change = rung.differences[name]
            return abs(change.difference) * min(change.calls.times)

        whole, *others = judged
        calls = [rung for rung in others if rung.differences[name].calls.kind == CALL]
        most = max(calls, key=size, default=whole)
        return (most if 2 * size(most) >= size(whole) > 0 else whole).key

    def judge(self, good: Result, bad: Result) -> Callable[[Result], bool]:
        """A function that tells whether a result is bad. Raises IopathError if the ends agree.

        The ends are judged as compare does it. Without a name, the figure by which they differ most
        is followed: the path, unless another differs by more than twice as much; or if they take
        the same, another metric that a gate judges, or what several CPUs share. A kernel that
        differs from both ends belongs to the nearer one.
        """
        found = boots.decide(self._session, self._settings, self._by_kernel(good, bad), self._ends)
        differing, (one, other) = found.differing, found.records
        # Those in between are booted as often.
        self._settings = replace(self._settings, boots=max(self._settings.boots, len(one.boots)))
        if not differing and found.undecided:
            raise IopathError(
                f"{len(one.boots)} boots of each end do not tell whether they differ: measure with"
                f" --boots {found.undecided} or more"
            )
        if not differing:
            name = self._named or (self._key[1] if self._key else "")
            raise IopathError(
                f"both ends take the same{f' by {name}' if name else ''}:"
                f" {one.instructions_per_io:,.2f} and {other.instructions_per_io:,.2f} instructions"
                f" {'each time' if self._key else 'per I/O'}"
            )
        most = max(size for _, size in differing)
        metric = next(metric for metric, size in differing if 2 * size >= most)
        self._metric = metric
        self._say(f"following: {self._name}")

        def is_bad(measured: Result) -> bool:
            found = self._followed(measured)
            from_good, from_bad = (exact.judge(metric, end, found) for end in (one, other))
            if not from_good or not from_bad:
                raise IopathError(f"it has no {metric.name}")
            if noise.SAME in (from_good.verdict, from_bad.verdict):
                return from_good.verdict != noise.SAME
            return abs(from_bad.difference) < abs(from_good.difference)

        return is_bad

    def compare(self, good: Result, bad: Result, layers: Layers) -> Compared:
        """How what was found differs: the last good kernel, and the first bad one."""
        measured = self._by_kernel(good, bad)
        return boots.compare(self._session, self._settings, measured, dict(
            zip(measured, (good.names[0], bad.names[0]), strict=True)
        ), layers)  # fmt: skip

    def _by_kernel(self, *measured: Result) -> boots.Results:
        return {self._kernels[one.names[0]]: one for one in measured}

    def _ends(self, measured: boots.Results) -> "_Ends":
        """The metrics that may be followed."""
        self._key = self._choose(*measured.values())
        one, other = records = [self._followed(end) for end in measured.values()]
        found = _Ends(records)
        for some in self._choices(one):
            for metric in () if found.differing else some:
                change = exact.judge(metric, one, other)
                if change is None:
                    continue
                if change.verdict == noise.UNKNOWN:
                    found.undecided = max(found.undecided, change.wanted)
                elif change.verdict != noise.SAME:
                    found.differing.append((metric, abs(change.difference)))
        return found

    def _choices(self, record: ExactRecord) -> list[Sequence[Metric]]:
        """The metrics that may be followed. The first ones by which the ends differ are."""
        arrangements = record.sharing.arrangements if record.sharing else ()
        writes = {
            f"shared {kind}": [metrics.shared(part.name, kind) for part in arrangements]
            for kind in SHARED_WRITES
        }
        if self._key:
            return [(INSTRUCTIONS,)]
        if self._named:
            own = [metric for metric in METRICS if metric.name == self._named]
            return [own or writes[self._named]]
        path = (INSTRUCTIONS, *LONG_RUN)
        others = [metric for metric in METRICS if metric.gated and metric not in path]
        return [path, others, *writes.values()]


@dataclass
class _Ends:
    """The records of both ends, and the metrics by which they differ. If none is, more boots than
    there are may tell: *undecided* of each end."""

    records: list[ExactRecord]
    differing: list[tuple[Metric, float]] = field(default_factory=list)
    undecided: int = 0

    @property
    def wanted(self) -> dict[str, int]:
        return {} if self.differing else {self.records[0].rung: self.undecided}


def search(looked: Search, session: Session, good: str, bad: str, say: Say) -> list[Result]:
    """What the last good kernel and the first bad one take, of those from *good* to *bad*."""
    if (first := session.commit(good)) is None:
        names, text = session.between(good, bad)
        say(text)
        return packages(looked, names, say)
    for name in (good, bad):
        if gitrepo.SETTINGS.search(name):
            raise UsageError(
                f"{name}: all commits have one configuration: use --config and --kconfig"
            )
    (repository, revision), prefix = first, good.partition(":")[0]
    last = session.commit(bad)
    if last is None or last[0] != repository:
        raise UsageError(
            f"{bad}: not a commit of {repository.name}: it must be"
            f" {prefix}:{repository.name}@REVISION"
        )
    return commits(looked, prefix, repository, revision, last[1], session.cache, say)


def packages(search: Search, names: Sequence[str], say: Say) -> list[Result]:
    """Search the kernels *names*, ordered from good to bad: the results of the last good one and
    the first bad one. Kernels in between that had to be skipped are said."""
    good = search.measure(names[0], names[0])
    bad = search.measure(names[-1], names[-1])
    is_bad = search.judge(good, bad)
    low, high = 0, len(names) - 1
    skipped: set[int] = set()
    while True:
        open_ = [at for at in range(low + 1, high) if at not in skipped]
        if not open_:
            break
        at = min(open_, key=lambda at: abs(at - (low + high) / 2))
        try:
            found = search.measure(names[at], names[at])
        except IopathError as error:
            say(f"{names[at]}: skipped: {error}")
            skipped.add(at)
            continue
        if is_bad(found):
            high, bad = at, found
        else:
            low, good = at, found
    unknown = [names[at] for at in sorted(skipped) if low < at < high]
    if unknown:
        say(f"or one of the skipped kernels: {', '.join(unknown)}")
    return [good, bad]


def commits(
    search: Search, prefix: str, repository: Repository, good: str, bad: str, cache: Cache, say: Say
) -> list[Result]:
    """Search the commits of a repository, whose kernels' names begin with *prefix*, without
    modifying it: the results of the first bad commit and the one before."""
    good, bad = (repository.commit(name) for name in (good, bad))
    _check_ends(repository.path, good, bad)

    def measure(commit: str) -> Result:
        return search.measure(f"{prefix}:{repository.name}@{commit}", commit[:12])

    with cache.workspace("bisect", {"repository": gitrepo.key(repository)}) as folder:
        shutil.rmtree(folder / "git", ignore_errors=True)
        gitrepo.share_objects(repository, folder / "git")
        git(folder / "git", "update-ref", "--no-deref", "HEAD", bad)
        return _first_bad(search, folder / "git", good, bad, measure, say)


def _first_bad(
    search: Search, path: Path, good: str, bad: str, measure: Callable[[str], Result], say: Say
) -> list[Result]:
    """Have git search the commits of the repository *path*: the results of the first bad one and
    the one before. git checks nothing out."""
    results = {commit: measure(commit) for commit in (good, bad)}
    is_bad = search.judge(results[good], results[bad])
    output = _bisect(path, "start", "--no-checkout", bad, good)
    while not (found := re.search(r"([0-9a-f]{40}) is the first bad commit", output)):
        if "There are only 'skip'ped commits left" in output:
            left = [
                git(path, "log", "-1", "--format=%h (%s)", commit)
                for commit in re.findall(r"^[0-9a-f]{40}$", output, re.MULTILINE)
            ]
            raise IopathError(
                f"some commits could not be measured, so it is one of {', '.join(left)}"
            )
        commit = git(path, "rev-parse", "BISECT_HEAD")
        try:
            results[commit] = results.get(commit) or measure(commit)
            word = "bad" if is_bad(results[commit]) else "good"
        except IopathError as error:
            say(f"skipped: {error}")
            word = "skip"
        output = _bisect(path, word)
    first = found.group(1)
    parent = git(path, "rev-parse", f"{first}^")
    for commit in (parent, first):
        results[commit] = results.get(commit) or measure(commit)
    say(git(path, "log", "-1", "--format=first bad commit: %h %s (%an, %as)", first))
    return [results[parent], results[first]]


def _check_ends(path: Path, good: str, bad: str) -> None:
    """Complain about ends between which nothing can be found, before any is measured."""
    if good == bad:
        raise UsageError(f"GOOD and BAD are one commit, {good[:12]}: there is nothing in between")
    if gitrepo.run(path, "merge-base", "--is-ancestor", bad, good).returncode == 0:
        raise UsageError(f"BAD ({bad[:12]}) comes before GOOD ({good[:12]}): exchange them")


_SKIPPED = 2  # exit status of git bisect where only skipped commits are left


def _bisect(path: Path, *words: str) -> str:
    """What git bisect says. Raises IopathError where it cannot go on, such as with a merge base
    that is bad; git's explanation may be several lines."""
    done = gitrepo.run(path, "bisect", *words)
    if done.returncode not in (0, _SKIPPED):
        lines = (done.stderr.strip() or done.stdout.strip() or "it failed").splitlines()
        text = " ".join(line.strip().removeprefix("error: ") for line in lines)
        raise IopathError(f"git bisect {words[0]}: {text}")
    return done.stdout + done.stderr
