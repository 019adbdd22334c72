"""Cached properties for frozen Structs, without a lock.

`functools.cached_property` of Python 3.11 takes a lock at each first access, which costs a microsecond: for a few facts
of ten thousand new pods that is longer than the whole plan may take. Here two threads may at worst compute the same
value twice.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class struct_cached_property(Generic[T]):  # noqa: N801 - used like functools.cached_property
    """A property whose value is cached in the instance's `__dict__`, from where later reads take it directly."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type[object]) -> "struct_cached_property[T]": ...

    @overload
    def __get__(self, instance: object, owner: type[object] | None = None) -> T: ...

    def __get__(self, instance: object | None, owner: type[object] | None = None) -> "struct_cached_property[T] | T":
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value
