# SPDX-License-Identifier: GPL-2.0
"""Sphinx's settings: make htmldocs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "iopath"
extensions = ["kerneldoc"]
exclude_patterns = ["results"]
html_theme = "alabaster"
html_static_path = ["_static"]
html_theme_options = {"description": "What one I/O costs in the Linux kernel above the driver"}
