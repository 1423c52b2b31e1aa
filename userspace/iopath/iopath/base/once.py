# SPDX-License-Identifier: GPL-2.0
"""A value that several threads share: the first one that needs it makes it."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from iopath.base.errors import IopathError

T = TypeVar("T")


class Once(Generic[T]):
    """What *make* gives, which is called once. Its IopathError is raised in each thread."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make: Callable[[], T] | None = make
        self._lock = threading.Lock()  # protects the other fields
        self._error: IopathError | None = None
        self._value: T

    def __call__(self) -> T:
        with self._lock:
            if self._make:
                try:
                    self._value = self._make()
                except IopathError as error:
                    self._error = error
                self._make = None
            if self._error:
                raise self._error
            return self._value
