# SPDX-License-Identifier: GPL-2.0
"""rpm:FILES: a kernel of RPM packages that you have: of Fedora, RHEL or SUSE, or of make
binrpm-pkg.

rpm:FOLDER                    all packages in a folder, which must be of one kernel
rpm:CORE.rpm,DEVEL.rpm        these; of Fedora kernel-core, kernel-modules-core and kernel-devel
"""

from iopath.kernels import packaged
from iopath.kernels.finder import Finder
from iopath.kernels.packaged import Packaged

NAMES = ("rpm:FILES",)


def find(spec: str, finder: Finder) -> Packaged:
    return packaged.find("rpm", spec)
