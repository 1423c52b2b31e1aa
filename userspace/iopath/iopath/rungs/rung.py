# SPDX-License-Identifier: GPL-2.0
"""A rung: a scenario that measures one way of doing I/O. rungs.toml has those of iopath."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from iopath.base.cache import digest_file, digest_of
from iopath.base.devices import Device
from iopath.results.ops import OPS

# Rounds are short compared with the kernel's timer tick (4 ms, four million instructions), so most
# see no tick. They are many, so their median is the path itself. They are in threads whose memory
# and files are laid out in other ways: a cost that half of the layouts pay shows in the rounds.
ROUNDS = 48
LAYOUTS = 16
FULLY = 4  # so many of these layouts count functions and memory accesses
CHECKED = 4  # so many are in a boot that shows whether it adds anything
LONG = 60  # the long run has the I/Os of so many rounds; it shows rare and deferred work
_IOS = 100  # I/Os in a round
_MOST = 16 << 20  # bytes of a batch: a longer one would outlast the timer tick
_LARGE = 64 << 10  # bytes; larger I/Os come fewer to a round
# Bytes of a round, of which the guest's clock counts each that is copied; and a sixtieth of those
# of a long run.
_COPIED, _COPIED_LONG = 512 << 10, 2 << 20

_PAGE = 4096  # bytes; a larger buffer has neighbouring pages
_HUGE = "--hugepages"

_COPIES = "--ioengine=buffered"
CACHED = "--direct=0"
CACHED_SIZE = "--size=1m"  # as much of the device is read into the page cache before
_WALKED = "--size=24m"  # the same in a long run of writes: 6,000 pages
_BLKNULL = re.compile(r"/dev/blknull(\d+)")
_OURS = ("/dev/blknull", "/dev/biogen")

Overrides = Mapping[str, Mapping[str, str]]  # parameters by module and name


@dataclass(frozen=True)
class Module:
    """A module to load, with its parameters."""

    name: str
    parameters: tuple[tuple[str, str], ...] = ()
    optional: bool = False  # loaded if the kernel has it

    def words(self, overrides: Overrides) -> list[str]:
        """The parameters as insmod takes them."""
        values = {**dict(self.parameters), **overrides.get(self.name, {})}
        return [f"{name}={value}" for name, value in values.items()]

    def steps(self, overrides: Overrides) -> list[str]:
        """Steps that create what the parameters would, for a kernel that has the module built in:
        blknull's devices in configfs, and biogen's node by a parameter that comes last."""
        values = {**dict(self.parameters), **overrides.get(self.name, {})}
        if self.name == "biogen":
            names = sorted(values, key="device".__eq__)
            return [f"write /sys/module/biogen/parameters/{name} {values[name]}" for name in names]
        found = []
        for number in range(int(values.pop("nr_devices", 1))):
            folder = f"/sys/kernel/config/{self.name}/{self.name}{number}"
            found.append(f"mkdir {folder}")
            for name, listed in values.items():
                each = listed.split(",")
                found.append(f"write {folder}/{name} {each[min(number, len(each) - 1)]}")
            found.append(f"write {folder}/power 1")
        return found


@dataclass(frozen=True)
class Rung:
    """One scenario. Steps are commands of the guest's init (userspace/guest/init.c)."""

    name: str
    about: str
    options: tuple[str, ...] = ()  # the program's, besides those that command() adds
    batch: int = 1  # I/Os submitted at a time
    target: str | None = None  # a device or file; a rung without one has the single op "none"
    can: tuple[str, ...] = OPS  # operations on the target
    block_size: int | None = None  # bytes of an I/O, if it has a size of its own
    modules: tuple[Module, ...] = ()  # to load, in this order
    needs: tuple[str, ...] = ()  # kernel options, CONFIG_..., that must be set
    since: tuple[int, ...] = ()  # the first series of kernels that has what it needs
    tools: tuple[tuple[str, str], ...] = ()  # packages and their programs that steps run
    files: tuple[tuple[str, Path], ...] = ()  # their files in the guest, by path there
    begin: tuple[str, ...] = ()  # steps when the modules are loaded, once in a guest
    start: tuple[str, ...] = ()  # steps before these; then the guest's state is saved
    setup: tuple[str, ...] = ()  # steps before each run
    cleanup: tuple[str, ...] = ()  # steps after each run
    cpus: str = "0"  # the CPUs that the program runs on
    program: Path | None = None  # a static program; ioloop if there is none
    round_ios: int | None = None  # I/Os in a round, if it is not the usual number
    own_threads: bool = True  # the program's threads do the I/O, so its counters see it
    interrupts: int = 0  # that end an I/O; if any, the plugin counts the figure, not the clock
    devices: tuple[Device, ...] = ()  # of the emulator, by whose interrupts the I/Os of a batch end
    base: str = ""  # the rung without the layer, if this is one with a layer on the same device
    alone: bool = False  # each run has a guest of its own: what ran before would change the figure
    # Parameters of the first module that are multiplied by the number of CPUs where each is to have
    # a target of its own. Without them, the CPUs can only share the target.
    each_cpu: tuple[str, ...] = ()

    @property
    def guest_program(self) -> str:
        """The program's path in the guest."""
        return f"/bin/{self.program.name if self.program else 'ioloop'}"

    @property
    def digest(self) -> str:
        """The digest of its program, files, modules and steps."""
        parts = {name: str(part) for name, part in vars(self).items() if name != "about"}
        parts["program"] = digest_file(self.program) if self.program else ""
        parts["files"] = ", ".join(f"{path} {digest_file(file)}" for path, file in self.files)
        for name in ("devices", "since", "block_size"):
            if not vars(self)[name]:
                del parts[name]
        del parts["each_cpu"]  # modules have the parameters that follow from it
        return digest_of(parts)

    @property
    def layouts(self) -> int:
        """In how many layouts its rounds are, if its program can vary them."""
        splits = any(word.startswith("--split") for word in self.options)
        return 1 if self.program or splits else LAYOUTS

    @property
    def requires(self) -> list[str]:
        """Options and modules that the kernel must have."""
        own = ("blknull", "biogen")
        modules = [module.name for module in self.modules if not module.optional]
        return [*self.needs, *(name for name in modules if name not in own)]

    def ops(self, wanted: Sequence[str]) -> Sequence[str]:
        return [op for op in wanted if op in self.can] if self.target else ("none",)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files of its target, which is one or several with colons between them."""
        return tuple(self.target.split(":")) if self.target else ()

    @property
    def disk(self) -> str:
        """The name of its target's device."""
        return (self.target or "").removeprefix("/dev/")

    @property
    def has_target_each_cpu(self) -> bool:
        """Whether each CPU can have a target: it says how, and its first steps are for the target
        alone. If they are not, it has a layer on the device."""
        return bool(self.each_cpu) and all(self.disk in step for step in self.begin)

    @property
    def on(self) -> str:
        """What it does I/O on: a target, with the modules that it takes, and what is below it."""
        if not self.target:
            return ""
        if self.devices:
            return f"{self.target} on {dict(self.devices[0])['driver']} of the emulator"
        modules = [module.name for module in self.modules if not module.optional]
        below = f"blknull, {self._mode} mode" if "blknull" in modules else ""
        if below and self.target.startswith(_OURS):
            return below
        own = ", ".join(name for name in modules if name != "blknull")
        return f"{self.target}{own and f' ({own})'}{below and f' on {below}'}"

    @property
    def _mode(self) -> str:
        """The mode of the first device of blknull that it names."""
        steps = (*self.start, *self.begin)
        given = [dict(module.parameters) for module in self.modules]
        named = (self.target or "", *(one.get("device", "") for one in given), *steps)
        number = next((int(found[1]) for found in map(_BLKNULL.search, named) if found), 0)
        modes = next((one["mode"] for one in given if "mode" in one), "bio").split(",")
        in_configfs = any(step.endswith("/mode mq") for step in steps)
        return "mq" if in_configfs else modes[min(number, len(modes) - 1)]

    @property
    def waits(self) -> bool:
        """Whether the guest is idle until a device answers."""
        return bool(self.devices)

    @property
    def is_direct(self) -> bool:
        """Whether it does no I/O but direct I/O to iopath's own devices."""
        return CACHED not in self.options and all(path.startswith(_OURS) for path in self.paths)

    @property
    def polls(self) -> bool:
        """Whether the kernel polls the device."""
        return "--hipri" in self.options

    def fits(self, block_size: int) -> bool:
        """Whether a batch is short enough to be measured between two ticks of the timer."""
        return self.batch * block_size <= _MOST

    def ios(self, block_size: int) -> int:
        """How many I/Os make a round."""
        return self._ios(block_size, _COPIED)

    def long_ios(self, block_size: int) -> int:
        """How many I/Os make the long run. One that copies has more than 60 rounds."""
        return LONG * self._ios(block_size, _COPIED_LONG) // (1 if self.target else 10)

    def _ios(self, block_size: int, copied: int) -> int:
        """I/Os of a round that copies so many bytes at most, if it copies."""
        if self.round_ios:
            return self.round_ios
        if self.waits:  # a round that has one wait shows what the scheduler does at times
            return self.batch
        few = max(10, _IOS * _LARGE // max(block_size, _LARGE))
        if _COPIES in self.options:
            few = min(few, max(1, copied // block_size))
        return -(-few // self.batch) * self.batch if self.target else 10 * _IOS

    @property
    def _repeats(self) -> bool:
        """Whether its program can do a long round as if it were many."""
        return self.program is None and self.own_threads

    @property
    def rounds(self) -> int:
        """How many rounds there are. The scheduler has more to do in the first of a layout."""
        return 2 * ROUNDS if self.waits else ROUNDS

    def command(
        self, op: str, block_size: int, region: int, *, ios: int = 0, rounds: int = 0,
        layouts: int = 1, first: int = 0, long: bool = False,
    ) -> list[str]:  # fmt: skip
        """The command line of one run, which prints JSON; with *ios* to a round, if given, and
        with the rounds in so many *layouts* from the *first* on. A *long* run has one round, of as
        many I/Os as many rounds. In it, cached writes go from page to page: each page is written
        back once."""
        ios = ios or self.ios(block_size)
        repeat = self.long_ios(block_size) // ios if long else 1
        if repeat > 1 and not self._repeats:
            ios, repeat = ios * repeat, 1
        walks = long and op == "write" and CACHED in self.options
        options = self.options
        if walks and (self.target or "").startswith("/dev/"):
            options = tuple(_WALKED if word == CACHED_SIZE else word for word in options)
        words = [self.guest_program, *options, f"--number_ios={ios}"]
        if self.target:
            words += [f"--filename={self.target}", f"--rw={op}", f"--bs={block_size}"]
            if not any(word.startswith("--pattern=") for word in options):
                words.append(f"--pattern={'sequential' if walks else 'fixed'}")
        if block_size > _PAGE and not self.program and _HUGE not in options:
            words.append("--scatter")
        if layouts > 1:
            words.append(f"--layouts={layouts}")
        if first:
            words.append(f"--first_layout={first}")
        if repeat > 1:
            words.append(f"--repeat={repeat}")
        if long and not self.program:
            words += ["--after_batch", "--after_tick"] if self.waits else ["--after_tick"]
        return [
            *words,
            f"--rounds={1 if long else rounds or self.rounds}", f"--region={region}",
            f"--cpus_allowed={self.cpus}", "--output-format=json",
        ]  # fmt: skip
