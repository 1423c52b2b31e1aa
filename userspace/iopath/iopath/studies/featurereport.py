# SPDX-License-Identifier: GPL-2.0
"""What views show of the costs of features."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iopath.rungs.feature import Base
from iopath.show.figures import Figure
from iopath.studies import features, featuretable
from iopath.studies.features import Cost

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Chart


@dataclass
class FeaturesReport:
    """The costs, the base that features are compared with, and the command line of a program."""

    base: Base
    costs: Sequence[Cost]
    command: str = ""

    def json(self) -> str:
        return json.dumps(features.dump(self.base, self.costs, self.command), indent=1) + "\n"

    def markdown(self) -> str:
        return featuretable.markdown(self.base, self.costs, self.command)

    def figures(self) -> Iterator[Figure]:
        """What each feature costs more than the base, and the instructions with it."""
        for cost in self.costs:
            if cost.missing or cost.error:
                continue
            name, op = (cost.rung, cost.op) if cost.rung else (cost.op, "")
            noise = cost.noise or 0.0
            for metric, value, by in (
                ("instructions", cost.instructions, 0.0), ("difference", cost.difference, noise),
                ("difference of total", cost.total, 0.0), ("locked", cost.locked, 0.0),
                ("indirect", cost.indirect, 0.0),
            ):  # fmt: skip
                if value is not None:
                    yield Figure(
                        cost.kernel, f"{name} with {cost.feature}", metric, "instructions", value,
                        round(value - by, 4), round(value + by, 4), op=op,
                    )  # fmt: skip

    def chart(self) -> "Chart":
        from iopath.studies import featurechart  # slow to load

        return featurechart.chart(self.costs)
