# SPDX-License-Identifier: GPL-2.0
"""Print the JSON Schema of a kind of file: python -m iopath.results.schemas exact"""

import json
import sys

from iopath.results.bridgefile import MODE, Bridge
from iopath.results.result import KINDS
from iopath.results.schema import schema

FILES: dict[str, type] = {**KINDS, MODE: Bridge}

if __name__ == "__main__":
    if sys.argv[1:] not in [[name] for name in FILES]:
        sys.exit(f"iopath.results.schemas: name a kind of file: {', '.join(FILES)}")
    print(json.dumps(schema(FILES[sys.argv[1]]), indent=1))
