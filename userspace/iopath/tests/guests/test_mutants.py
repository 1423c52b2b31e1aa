# SPDX-License-Identifier: GPL-2.0
"""The modules' promises are tested: if one is broken in the source, a test fails."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.mutant import Mutant
from helpers.selftests import Kernel, kernel, programs, run, source
from iopath.base.sources import source_root
from iopath.guest.states import States
from iopath.measure.session import Session

__all__ = ["kernel", "programs", "source"]

SERIES = "6.12"


MUTANTS = [
    Mutant("a read dirties the pages", "biogen/pin.h", "if (dirty && unlikely(!PageDirty(page)))",
           "if (false)", "blknull_biogen -t dirties"),
    Mutant("coherent with the page cache", "biogen/target.h",
           "return unlikely(READ_ONCE(*bg->nr_cached));", "return false;",
           "biogen_io -r io.brd_sync.coherent"),
    Mutant("ENOSPC behind the end", "biogen/target.h", "*bytes = op_is_write(opf) ? -ENOSPC : 0;",
           "*bytes = 0;", "biogen_io -r io.brd_sync.edges"),
    Mutant("short at the end", "biogen/target.h", "*bytes = size - pos;", "*bytes = -EINVAL;",
           "biogen_io -r io.brd_sync.edges"),
    Mutant("memory is aligned as the device wants it", "biogen/rw.c",
           "|| unlikely(addr & biogen_dma_mask(bg)))", ")", "biogen_io -r io.block4k_aio.edges"),
    Mutant("an I/O error is returned", "biogen/rw.c", "err = biogen_io_error(io);",
           "biogen_io_error(io);\n\terr = 0;", "biogen_io -r io.bad_sync.bad_block"),
    Mutant("segments are those of the request", "biogen/rw.c", "bg, io, iocb, iter->bvec, nr_vecs,",
           "bg, io, iocb, iter->bvec, iter->nr_segs,", "biogen_limits -t many_segments"),
    Mutant("no request is cancelled when a thread exits", "biogen/chardev.c",
           "iocb->ki_flags &= ~IOCB_NOWAIT;", "return -EAGAIN;", "biogen_limits -t thread_exit"),
    Mutant("a bio that ends later is charged again", "biogen/late.c",
           "io->end = end;\n\tio->ready = BIOGEN_NOT_READY;", "io->end = end;",
           "biogen_io -r io.timer_aio.random"),
    Mutant("a synchronous bio is waited for", "biogen/late.c",
           "biogen_io_start_wait(io);\n\t\tbiogen_io_wait(io);", "biogen_io_start_wait(io);",
           "biogen_io -r io.bad_late.bad_block"),
    Mutant("the pages are back when BIOGEN_UNREGISTER returns", "biogen/reg.c",
           "biogen_finish_work();", "", "biogen_reg -t limit"),
    Mutant("BIOGEN_REGISTER begins again after a signal", "biogen/reg.c", "ret = -ERESTARTNOINTR;",
           "ret = -EINTR;", "biogen_reg -t begins_again"),
    Mutant("close() waits for nothing", "biogen/reg.c", "biogen_reg_unpin(reg, true);",
           "synchronize_rcu();\n\tbiogen_reg_unpin(reg, true);", "biogen_reg -t no_grace_period"),
    Mutant("a registration is held by its I/O", "biogen/rw.c",
           "else if (pages == BIOGEN_REGISTERED)\n\t\tbiogen_reg_put(io->reg);", "",
           "biogen_reg -t limit"),
    Mutant("the named node is removed", "biogen/device.c",
           "if (!strcmp(dev_name(&bg->dev), name)) {", "if (true) {", "biogen_file -t nodes"),
    Mutant("the generator stops at an error", "biogen/worker.c",
           "biogen_gen_end_early(w->gen, BIOGEN_FAILED);", "", "biogen_run -t error"),
    Mutant("reserved fields are 0", "biogen/gen.c", "memchr_inv(", "false && memchr_inv(",
           "biogen_run -t refuses"),
    Mutant("blknull hands out no stale memory", "blknull/fill.h", "zero_fill_bio(bio);", ";",
           "blknull_disk -t zeroes"),
    Mutant("a discard frees", "blknull/data.c", "memset(block->data + at, 0, len);", "",
           "blknull_data -t holds_data"),
    Mutant("every Nth I/O fails", "blknull/fault.c", "blknull_is_due(n, &config->fail_every) ||",
           "", "blknull_faults -t failures"),
    Mutant("I/O ends on the chosen CPU", "blknull/remote.c", "if (cpu == here)", "if (true)",
           "blknull_remote -r remote.bio.by_number"),
    Mutant("bad values are refused", "blknull/config.c",
           "if (*number >= attr->min && *number <= attr->max)", "if (true)",
           "blknull_disk -t bad_parameters"),
]  # fmt: skip


@pytest.mark.guest
@pytest.mark.parametrize("kernel", [SERIES], indirect=True, scope="module")
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.promise.replace(" ", "_"))
def test_mutant(
    mutant: Mutant,
    states: States,
    kernel: Kernel,
    programs: dict[str, bytes],
    session: Session,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = tmp_path / "source"
    root.mkdir()
    shutil.copytree(source_root() / "kernel", root / "kernel")
    shutil.copyfile(source_root() / "Kbuild", root / "Kbuild")
    path = root / "kernel" / mutant.file
    text = path.read_text()
    assert text.count(mutant.old) >= 1
    path.write_text(text.replace(mutant.old, mutant.new))
    found = session.find(f"debian:{SERIES}")
    with monkeypatch.context() as patch:
        patch.setenv("IOPATH_SOURCE", str(root))
        built = found.prepare(session.cache, session.apt, lambda what, part: None)
    broken = replace(kernel, modules=built.modules)
    faults = run(states, broken, mutant.test, programs, tmp_path / "console.log", time_limit=300)
    assert faults, f"no test notices that it is broken: {mutant.promise}"


@pytest.mark.guest
@pytest.mark.parametrize("kernel", [SERIES], indirect=True, scope="module")
@pytest.mark.parametrize("test", sorted({mutant.test for mutant in MUTANTS}))
def test_unbroken(
    test: str, states: States, kernel: Kernel, programs: dict[str, bytes], tmp_path: Path
) -> None:
    """The same tests pass if nothing is broken."""
    assert run(states, kernel, test, programs, tmp_path / "console.log") == []
