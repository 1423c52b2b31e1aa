# SPDX-License-Identifier: GPL-2.0
"""Convert dataclasses to JSON values, and back."""

import functools
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import cattrs

_Type = TypeVar("_Type")


@functools.cache
def _converter() -> "cattrs.Converter":
    import cattrs  # slow to load

    # cattrs 22.2 passes the fields of dataclasses by keyword only with detailed validation.
    return cattrs.Converter(omit_if_default=True)


def structure(data: object, kind: type[_Type]) -> _Type:
    """The value of a *kind* in *data*, as read from JSON. Raises ValueError if it is not one."""
    from cattrs.errors import BaseValidationError

    try:
        return _converter().structure(data, kind)
    except BaseValidationError as error:
        raise ValueError(_first(error)) from error


def unstructure(value: object) -> Any:  # noqa: ANN401
    """A value as it is written to JSON, without the fields that have their defaults."""
    return _converter().unstructure(value)


def _first(error: BaseException) -> str:
    """The first of the errors in a group of groups, on one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"it lacks {error}" if isinstance(error, KeyError) else str(error)
