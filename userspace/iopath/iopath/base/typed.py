# SPDX-License-Identifier: GPL-2.0
"""Convert dataclasses to JSON values, and back."""

import functools
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin

if TYPE_CHECKING:
    import cattrs

_Type = TypeVar("_Type")

# The two borders to JSON: an object as it is read, which is in no type yet, and unstructure().
# Nothing else is Any.
JsonObject = dict[str, Any]


@functools.cache
def _converter() -> "cattrs.Converter":
    import cattrs  # slow to load

    # cattrs 22.2 passes the fields of dataclasses by keyword only with detailed validation.
    converter = cattrs.Converter(omit_if_default=True)
    # cattrs 22.2 takes Annotated[list[X], ...] for a list of list[X].
    converter.register_structure_hook_factory(
        lambda kind: get_origin(kind) is Annotated and bool(get_args(get_args(kind)[0])),
        lambda kind: lambda value, _: converter.structure(value, get_args(kind)[0]),
    )
    return converter


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
