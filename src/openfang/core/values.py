"""Values: nobody changes one, which the type checker sees to.

`dataclass(frozen=True)` sees to it at run time as well, by a call of `object.__setattr__` for each
field: that made a call three times as dear to write down. So this is for what every call makes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    """Make a class one of values, written by the names of their fields."""
    return dataclass(slots=True, kw_only=True, unsafe_hash=True)(cls)
