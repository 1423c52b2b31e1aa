# SPDX-License-Identifier: GPL-2.0
"""What is kept of a kernel's own modules."""

import shutil
from pathlib import Path

from iopath.base.arch import Arch

# The parts of a kernel's own modules that a guest may need: folders, or modules that lie beside
# others. A list of those that are built in lies beside the modules.
_MODULES = (
    "block", "crypto", "drivers/ata/ahci", "drivers/ata/libahci", "drivers/ata/libata",
    "drivers/block", "drivers/md", "drivers/nvme", "drivers/scsi/scsi_common",
    "drivers/scsi/scsi_debug", "drivers/scsi/scsi_mod", "drivers/scsi/sd_mod",
    "drivers/scsi/virtio_scsi", "drivers/target/loopback", "drivers/target/target_core_iblock",
    "drivers/target/target_core_mod", "drivers/virtio", "fs/btrfs", "fs/configfs", "fs/exportfs",
    "fs/ext4", "fs/fscache", "fs/jbd2", "fs/lockd", "fs/mbcache", "fs/netfs", "fs/nfs",
    "fs/nfs_common", "fs/nfsd", "fs/xfs", "lib", "mm/zsmalloc", "net/dns_resolver", "net/sunrpc",
)  # fmt: skip
BUILT_IN = "modules.builtin"


def module_parts(arch: Arch) -> tuple[str, ...]:
    """These parts of a kernel of an architecture."""
    return (*(f"arch/{arch.source}/{folder}" for folder in arch.modules), *_MODULES)


def own_modules(tree: Path, arch: Arch) -> list[Path]:
    """The modules of a built tree that a guest may need."""
    parts = module_parts(arch)
    found = [path for part in parts for path in (tree / part).rglob("*.ko")]
    found += [path for part in parts for path in tree.glob(f"{part}.ko")]
    return sorted(found)


def keep_own_modules(tree: Path, folder: Path, arch: Arch) -> None:
    """Copy these to folder/lib, and the list of what is built in."""
    for path in [*own_modules(tree, arch), *tree.glob(BUILT_IN)]:
        target = folder / "lib" / path.relative_to(tree)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
