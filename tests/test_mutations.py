"""The changes that `make mutants` makes: small, whole, and never to what is only read by people."""

from __future__ import annotations

import ast

import pytest
from tools.mutations import mutated, mutations


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        ("def f(a, b): return a < b", ["a <= b", "return None"]),
        ("def f(a, b): return a and b", ["a or b", "return None"]),
        ("def f(a): return not a", ["a", "return None"]),
        ("def f(a): return a if a.b else 1", ["2", "not a.b", "return None"]),
        ("def f(a): return [x for x in a if x]", ["not x", "return None"]),
        ("def f(a):\n if a: raise E", ["pass", "not a"]),
        ("def f(a):\n while a: break", ["continue", "not a"]),
        ("def f(a): a.b = g()", ["pass"]),
        ("def f(a): a -= 1", ["2", "a += 1"]),
        ("def f(a, b): a ^= b", ["a &= b"]),
        ("def f(a): del a[g]; h()", ["pass", "pass"]),
        ("LIMIT = 5", ["6"]),
        ("class A:\n on: bool = True", ["False"]),
        ("def f(a: int = 1): ...", ["2"]),
        ("WORDS = {'read': b'x'}", ["'readX'", "b'xX'"]),
    ],
)
def test_each_line_has_its_changes(source: str, changed: list[str]) -> None:
    assert [one.after for one in mutations(source)] == changed


@pytest.mark.parametrize(
    "source",
    [
        '"""What is here."""',
        "from __future__ import annotations",
        "Verdict = Allow | Deny",
        "@dataclass(frozen=True)\nclass A:\n    size: Literal[1]",
        "__slots__ = ('a',)",
        "if TYPE_CHECKING:\n    LIMIT = 5",
        "def f(a: int | None) -> Literal['x']:\n    'Say so.'",
        "text = 'A sentence for people.'",
        "text = cast('Word', word)",
        "text = f'{word}s'",
        "class A:\n    seen: int = field(init=False, repr=False)",
        "Words = tuple['Word', ...]",
    ],
)
def test_what_only_people_read_is_left_alone(source: str) -> None:
    assert mutations(source) == []


SOURCE = """
LIMIT = 5

def check(
    call, *, most=LIMIT
):
    if call.cost > most or not call.key:
        raise Refused(
            "cost"
        )
    return call.cost + 1
"""


def test_every_change_is_a_program_of_its_own_that_differs_in_one_place() -> None:
    found = mutations(SOURCE)
    programs = {ast.unparse(mutated(SOURCE, one.number)) for one in found}
    assert len(programs) == len(found)
    assert ast.unparse(ast.parse(SOURCE)) not in programs
    assert all(compile(program, "changed", "exec") for program in programs)


def test_a_change_says_where_it_is_and_when_it_runs() -> None:
    places = [(one.before, one.line, one.statement, one.inside) for one in mutations(SOURCE)]
    assert places[0] == ("5", 2, 2, False)
    assert ("'cost'", 9, 8, True) in places
