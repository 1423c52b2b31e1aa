# SPDX-License-Identifier: GPL-2.0
"""The table of layers."""

import json
from pathlib import Path

import pytest

from iopath.results.layers import Layers
from iopath.results.symbol import Symbol


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("ktime_get", "time"), ("read_tsc", "time"), ("call_rcu", "locks and RCU"),
        ("__call_rcu_common.constprop.0", "locks and RCU"), ("schedule", "scheduling"),
        ("ktime_get_coarse_real_ts64", "VFS"),
    ],
)  # fmt: skip
def test_layers(name: str, layer: str) -> None:
    assert Layers().of(Symbol(name)) == layer


@pytest.mark.parametrize(
    ("name", "module", "layer"),
    [
        ("one", "", "named"), ("one", "mod", "of a module"), ("one_more", "", "begun"),
        ("two", "", "late"), ("three", "", "begun"), ("a_lot", "", "any"), ("b", "", "other"),
    ],
)  # fmt: skip
def test_the_first_layer_with_a_pattern_that_matches(
    tmp_path: Path, name: str, module: str, layer: str
) -> None:
    """Whether the pattern is a name, the beginning of names, or another."""
    layers = {
        "of a module": ["* [[]mod]"], "named": ["one"], "begun": ["one*", "three*"],
        "any": ["a?*t", "thr[e]e"], "late": ["one", "t*"],
    }  # fmt: skip
    text = "".join(
        f'[[layer]]\nname = "{known}"\nfunctions = {json.dumps(patterns)}\n'
        for known, patterns in layers.items()
    )
    (tmp_path / "layers.toml").write_text(text)
    assert Layers(tmp_path / "layers.toml").of(Symbol(name, module)) == layer
