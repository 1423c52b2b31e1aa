# SPDX-License-Identifier: GPL-2.0
"""JSON Schemas of the files that iopath writes, made from the types that they are read into.

Annotated[TYPE, "what it is", ("minimum", 0)] adds a description, and what a schema says besides
the type. KEYWORDS of a class are what it says of all fields together.
"""

import dataclasses
import types
import typing
from collections.abc import Iterator
from typing import Annotated, TypeVar

T = TypeVar("T")

NotNegative = Annotated[float, ("minimum", 0)]
Natural = Annotated[int, ("minimum", 0)]
Positive = Annotated[int, ("minimum", 1)]
Digest = Annotated[str, ("pattern", "^[0-9a-f]{64}$")]
Several = Annotated[list[T], ("minItems", 1)]

Schema = dict[str, object]

_SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean"}


def schema(kind: type) -> Schema:
    """The schema of a file that is read into a *kind*."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_schema(kind)}


def _schema(kind: object) -> Schema:
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        found = _schema(args[0])
        for more in args[1:]:
            found |= _keyword(*(("description", more) if isinstance(more, str) else more))
        return found
    if origin in (typing.Union, types.UnionType):
        (some,) = (part for part in args if part is not types.NoneType)
        return _schema(some)
    if origin is list:
        return {"type": "array", "items": _schema(args[0])}
    if origin is tuple:
        every = [_schema(part) for part in args]
        ends = {"minItems": len(every), "maxItems": len(every)}
        return {"type": "array", "prefixItems": every, **ends}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(args[1])}
    if kind in _SCALARS:
        return {"type": _SCALARS[kind]}
    fields = {field.name: field.default for field in dataclasses.fields(kind)}
    return {
        "description": " ".join((kind.__doc__ or "").split()),
        "type": "object",
        "required": [name for name in fields if fields[name] is dataclasses.MISSING],
        "properties": {name: _schema(hint) for name, hint in _hints(kind) if name in fields},
        **getattr(kind, "KEYWORDS", {}),
    }


def _keyword(name: str, value: object) -> Schema:
    """What a pair says. "propertyNames.enum" is a keyword of the names of a dictionary."""
    value = [*value] if isinstance(value, tuple) else value
    outer, _, inner = name.partition(".")
    return {outer: {inner: value} if inner else value}


def _hints(kind: type) -> Iterator[tuple[str, object]]:
    """The type of each field. Where a class only says that a field is needed, the description is
    that of its base."""
    own = typing.get_type_hints(kind, include_extras=True)
    for name, hint in own.items():
        bases = [typing.get_type_hints(one, include_extras=True) for one in kind.__mro__[1:]]
        texts = [text for hints in bases if name in hints for text in _texts(hints[name])]
        yield name, hint if not texts or _texts(hint) else Annotated[hint, texts[0]]


def _texts(hint: object) -> list[str]:
    more = getattr(hint, "__metadata__", ())
    return [text for text in more if isinstance(text, str)]
