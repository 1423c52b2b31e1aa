# SPDX-License-Identifier: GPL-2.0
"""Sphinx's settings: make htmldocs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "iopath"
extensions = ["kerneldoc"]
exclude_patterns = ["results"]
html_theme = "alabaster"
html_theme_options = {
    "description": "What one I/O costs in the Linux kernel above the driver",
    "pre_bg": "#f8f8f8",  # that the colours of code are made for
}
html_static_path = ["_static"]
pygments_style = "default"
html_show_copyright = html_show_sphinx = False
html_show_sourcelink = False
