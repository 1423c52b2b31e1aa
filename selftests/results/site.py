# SPDX-License-Identifier: GPL-2.0
"""The site of Debian's series, from the points that iopath track wrote."""

import argparse
import json
import sys
from pathlib import Path

from iopath.base import files
from iopath.track import site


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("points", type=Path, metavar="POINTS.json")
    parser.add_argument("output", type=Path, metavar="FILE.html")
    args = parser.parse_args()
    args.output.parent.mkdir(parents=True, exist_ok=True)
    files.write(args.output, site.alone(json.loads(args.points.read_text())).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
