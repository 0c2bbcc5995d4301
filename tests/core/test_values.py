"""Our dataclasses do what those of the standard library do, but for what it costs to make them."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import pytest

from openfang.core import values
from openfang.core.values import value

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.requirement("C19.1")
EVERY: list[dict[str, bool]] = [
    {},
    {"slots": True},
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "kw_only": True},
    {"frozen": True, "slots": True, "eq": False},
    {"slots": True, "unsafe_hash": True},
    {"frozen": True, "slots": True, "order": True},
    {"slots": True, "weakref_slot": True},
]


class Pair(NamedTuple):
    """The same class, made by the library and by us."""

    theirs: Any
    ours: Any

    def same(self, ask: Callable[[Any], object]) -> bool:
        return ask(self.theirs) == ask(self.ours)


def pair(options: dict[str, bool]) -> Pair:
    def make(decorate: Callable[..., Any]) -> Any:
        @decorate(**options)
        class Thing:
            """A thing."""

            KIND: ClassVar[str] = "thing"
            first: int
            second: str = "two"
            third: list[int] = field(default_factory=lambda: [3])
            told: int = field(default=4, repr=False, compare=False)
            kept: int = field(default=5, init=False)
            fresh: dict[str, int] = field(default_factory=dict[str, int], init=False)

            def __post_init__(self) -> None:
                self.third.append(self.first)

        return Thing

    return Pair(make(dataclasses.dataclass), make(values.dataclass))


@pytest.fixture(params=EVERY, ids=lambda options: "-".join(options) or "plain")
def things(request: pytest.FixtureRequest) -> Pair:
    return pair(request.param)


def test_what_is_made_holds_and_shows_the_same(things: Pair) -> None:
    assert things.same(lambda cls: repr(cls(first=1)))
    assert things.same(lambda cls: dataclasses.asdict(cls(first=1, second="b", third=[], told=9)))
    assert things.same(lambda cls: repr(replace(cls(first=1), second="c")))
    assert things.same(lambda cls: (cls.__match_args__, cls.__doc__, cls.KIND))
    assert things.same(lambda cls: [one.name for one in dataclasses.fields(cls)])
    assert things.same(lambda cls: "__slots__" in vars(cls) and cls.__slots__)


def test_what_is_made_is_equal_to_the_same(things: Pair) -> None:
    assert things.same(lambda cls: cls(first=1) == cls(first=1, told=7))
    assert things.same(lambda cls: cls(first=1) == cls(first=2))
    assert things.same(lambda cls: cls(first=1) == 1)
    assert things.same(lambda cls: cls.__hash__ is None)


def test_what_is_made_takes_the_same_arguments(things: Pair) -> None:
    def told(cls: Any) -> list[object]:
        given = inspect.signature(cls).parameters.values()
        return [(one.name, one.kind, one.default is inspect.Parameter.empty) for one in given]

    assert things.same(told)
    assert things.ours(first=1).third is not things.ours(first=1).third
    for wrong in ({}, {"first": 1, "kept": 2}, {"first": 1, "other": 2}):
        with pytest.raises(TypeError):
            things.ours(**wrong)


def test_what_is_made_can_be_copied(things: Pair) -> None:
    assert things.same(lambda cls: repr(copy.copy(cls(first=1))))
    assert things.same(lambda cls: repr(copy.deepcopy(cls(first=1))))


def test_what_is_frozen_stays_as_it_is(things: Pair) -> None:
    def changed(cls: Any) -> bool:
        thing = cls(first=1)
        try:
            thing.first = 2
            del thing.second
        except FrozenInstanceError:
            return False
        return thing.first == 2

    assert things.same(changed)
    assert things.same(lambda cls: cls.__dataclass_params__.frozen)


@values.dataclass(frozen=True, slots=True)
class Point:
    x: int = 0
    y: int = 0


@values.dataclass(frozen=True, slots=True)
class Nothing: ...


@value
class Quick:
    x: int
    y: tuple[int, ...] = ()


def test_equal_values_have_equal_hashes() -> None:
    assert len({Point(1, 2), Point(1, 2), Point(2, 1)}) == 2
    assert len({Quick(x=1), Quick(x=1), Quick(x=1, y=(2,))}) == 2
    assert len({Nothing(), Nothing()}) == 1
    assert Nothing() != Point()


def test_a_frozen_value_goes_through_pickle() -> None:
    assert pickle.loads(pickle.dumps(Point(1, 2))) == Point(1, 2)  # noqa: S301 - our own


def test_a_class_keeps_the_methods_that_it_has() -> None:
    @values.dataclass(frozen=True, slots=True)
    class Own:
        x: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

        def __hash__(self) -> int:
            return 7

    @values.dataclass
    class Made:
        def __init__(self) -> None:
            self.x = 1

    assert (repr(Own(1)), Own(1) == Own(2), hash(Own(1))) == ("own", True, 7)
    assert Made().x == 1


def test_what_is_made_from_another_is_one_of_them() -> None:
    @values.dataclass(frozen=True, slots=True)
    class Deep(Point):
        z: int = 0

    @dataclasses.dataclass(frozen=True)
    class Theirs(Point):
        z: int = 0

    for cls in (Deep, Theirs):
        assert repr(cls(1, 2, 3)).endswith("(x=1, y=2, z=3)")
        assert cls(1, 2, 3) == cls(1, 2, 3) != cls(1, 2, 4)
        with pytest.raises(FrozenInstanceError):
            cls(1, 2, 3).x = 2  # type: ignore[misc]


def test_a_plain_heir_of_a_frozen_class_has_what_it_adds() -> None:
    class Named(Point):
        name: str

    named = Named(1, 2)
    named.name = "p"
    assert named.name == "p"
    with pytest.raises(FrozenInstanceError):
        named.x = 2  # type: ignore[misc]


def test_a_field_without_a_default_stands_before_those_that_have_one() -> None:
    with pytest.raises(SyntaxError):

        @values.dataclass
        class Wrong:  # pyright: ignore[reportUnusedClass]
            x: int = 0
            y: int  # type: ignore[misc]


def test_what_holds_itself_can_be_shown() -> None:
    @values.dataclass(slots=True)
    class Ring:
        inner: object = None

    ring = Ring()
    ring.inner = ring
    assert repr(ring).endswith("Ring(inner=...)")
