"""Dataclasses that cost little: as the standard library's, in half of the time and memory.

The library compiles six methods for each class, and a node has hundreds of classes: that was two
fifths of the start of a command. Here a class gets an `__init__` of its own; the rest is shared.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, FrozenInstanceError, field, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, dataclass_transform

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from dataclasses import Field
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - the same, to a type checker

T = TypeVar("T")
_UNSET: Final = object()


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    """Make a class one of values that every call makes, written by the names of their fields.

    Nobody changes one, which the type checker sees to. `dataclass(frozen=True)` sees to it at run
    time as well, field by field: that made a call three times as dear to write down.
    """
    return _made(cls, slots=True, kw_only=True, unsafe_hash=True)


if not TYPE_CHECKING:

    def dataclass(cls: Any = None, /, **options: bool) -> Any:  # noqa: ANN401 - seen by no checker
        """Make a class a dataclass, with the options of the standard library's."""
        return _made(cls) if cls is not None else lambda cls: _made(cls, **options)


def _made(
    cls: type[T],
    *,
    frozen: bool = False,
    eq: bool = True,
    order: bool = False,
    unsafe_hash: bool = False,
    **options: bool,
) -> type[T]:
    if order or any(map(dataclasses.is_dataclass, cls.__mro__[1:])):
        return dataclasses.dataclass(
            cls, frozen=frozen, eq=eq, order=order, unsafe_hash=unsafe_hash, **options
        )
    hashed = cls.__dict__.get("__hash__") is not None
    cls.__doc__ = cls.__doc__ or cls.__name__  # the library would look for a signature
    made: Any = dataclasses.dataclass(cls, init=False, repr=False, eq=False, **options)
    methods: dict[str, object] = {"__init__": _init(made, frozen=frozen), "__repr__": _repr}
    if eq:
        methods |= {"__eq__": _equal, "__dataclass_values__": _values(made)}
    if frozen:
        methods |= _FROZEN
        made.__dataclass_params__.frozen = True
    for name, method in methods.items():
        if name not in made.__dict__:
            setattr(made, name, method)
    if eq and not hashed:
        made.__hash__ = _hash if frozen or unsafe_hash else None
    return made


def _init(cls: type, *, frozen: bool) -> Callable[..., None]:
    every = fields(cast("Any", cls))
    given = sorted((one for one in every if one.init), key=lambda one: bool(one.kw_only))
    world, scope = dict[str, Any](__unset=_UNSET), dict[str, Any]()
    body = [_set(cls, one, world, frozen=frozen) for one in every if _is_set(one)]
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    source = f"def __init__({_parameters(given)}):\n " + ("\n ".join(body) or "pass")
    exec(source, world, scope)  # noqa: S102 - made of the names of fields, which are identifiers
    made = scope["__init__"]
    known = [one for one in given if _default(one) is not MISSING]
    made.__defaults__ = tuple(_default(one) for one in known if not one.kw_only)
    made.__kwdefaults__ = {one.name: _default(one) for one in known if one.kw_only}
    made.__module__, made.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
    return made


def _parameters(given: Sequence[Field[Any]]) -> str:
    names = ["self", *(one.name + "=0" * (_default(one) is not MISSING) for one in given)]
    places = 1 + sum(not one.kw_only for one in given)
    return ", ".join([*names[:places], *["*"] * (places < len(names)), *names[places:]])


def _default(one: Field[Any]) -> object:
    return one.default if one.default_factory is MISSING else _UNSET


def _is_set(one: Field[Any]) -> bool:
    return one.init or _default(one) is not MISSING


def _set(cls: type, one: Field[Any], world: dict[str, Any], *, frozen: bool) -> str:
    """Write down how a field gets its value; `world` gets what that needs."""
    name, it = one.name, one.name
    if one.default_factory is not MISSING:
        world[f"__new_{name}"] = one.default_factory
        it = f"__new_{name}() if {name} is __unset else {name}" if one.init else f"__new_{name}()"
    elif not one.init:
        world[f"__given_{name}"] = one.default
        it = f"__given_{name}"
    if not frozen:
        return f"self.{name} = {it}"
    if "__slots__" not in cls.__dict__:
        return f"self.__dict__[{name!r}] = {it}"
    world[f"__set_{name}"] = cls.__dict__[name].__set__  # the slot itself, which nobody guards
    return f"__set_{name}(self, {it})"


def _values(cls: type) -> Callable[[Any], object]:
    names = [one.name for one in fields(cast("Any", cls)) if one.compare]
    return attrgetter(*names) if names else type


@recursive_repr()
def _repr(self: Any) -> str:  # noqa: ANN401 - any dataclass
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _equal(self: Any, other: object) -> bool:  # noqa: ANN401 - as above
    if other.__class__ is not self.__class__:
        return NotImplemented
    values = self.__dataclass_values__
    return values(self) == values(other)


def _hash(self: Any) -> int:  # noqa: ANN401 - as above
    return hash(self.__dataclass_values__(self))


def _put(self: Any, name: str, it: object) -> None:  # noqa: ANN401 - as above
    _check(type(self), name)
    object.__setattr__(self, name, it)


def _drop(self: Any, name: str) -> None:  # noqa: ANN401 - as above
    _check(type(self), name)
    object.__delattr__(self, name)


def _check(cls: Any, name: str) -> None:  # noqa: ANN401 - as above
    """Refuse to change what is frozen; a plain heir has what it adds itself."""
    if "__dataclass_params__" in cls.__dict__ or name in cls.__dataclass_fields__:
        raise FrozenInstanceError(f"cannot change {name!r} of {cls.__qualname__}, which is frozen")


def _state(self: Any) -> list[object]:  # noqa: ANN401 - as above
    return [getattr(self, one.name) for one in fields(self)]


def _restore(self: Any, state: list[object]) -> None:  # noqa: ANN401 - as above
    for one, it in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, it)


_FROZEN: Final = {
    "__setattr__": _put,
    "__delattr__": _drop,
    "__getstate__": _state,
    "__setstate__": _restore,
}
