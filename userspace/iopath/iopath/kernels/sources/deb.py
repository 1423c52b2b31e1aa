# SPDX-License-Identifier: GPL-2.0
"""deb:FILES: a kernel of Debian packages that you have: of Ubuntu, or of make bindeb-pkg.

deb:FOLDER                    all packages in a folder, which must be of one kernel
deb:IMAGE.deb,HEADERS.deb     these; of Ubuntu also linux-modules-... and linux-headers-..._all.deb
"""

from iopath.kernels import packaged
from iopath.kernels.finder import Finder
from iopath.kernels.packaged import Packaged

NAMES = ("deb:FILES",)


def find(spec: str, finder: Finder) -> Packaged:
    return packaged.find("deb", spec)
