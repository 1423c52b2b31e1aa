# SPDX-License-Identifier: GPL-2.0
"""The README's picture, from a result file."""

import argparse
import sys
from pathlib import Path

from iopath.results import result
from iopath.show import charts, picture


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("result", type=Path, metavar="FILE.json")
    parser.add_argument("output", type=Path, metavar="FILE.svg")
    args = parser.parse_args()
    whole = result.load(args.result)
    drawn = picture.draw(whole)
    charts.save(drawn, args.output)
    print(drawn.get_label())
    return 0


if __name__ == "__main__":
    sys.exit(main())
