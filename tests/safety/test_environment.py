from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.safety.environment import VariableRefused, child_environment, expand

pytestmark = pytest.mark.requirement("C3.8")

PARENT = {
    "PATH": "/bin",
    "HOME": "/root",
    "TOKEN": "t0p",
    "API_KEY": "canary",
    "NESTED": "${TOKEN}",
}


def test_a_child_gets_path_and_nothing_else_of_its_parent() -> None:
    assert child_environment(PARENT) == {"PATH": "/bin"}


def test_a_child_has_folders_of_its_own() -> None:
    assert child_environment(PARENT, home="/h", tmp="/t") == {
        "PATH": "/bin",
        "HOME": "/h",
        "TMPDIR": "/t",
    }


def test_listed_names_pass_and_values_expand() -> None:
    made = child_environment(
        PARENT, names=["TOKEN"], values={"AUTH": "Bearer ${TOKEN}", "PLAIN": "$TOKEN $(x) ${}"}
    )
    assert made == {
        "PATH": "/bin",
        "TOKEN": "t0p",
        "AUTH": "Bearer t0p",
        "PLAIN": "$TOKEN $(x) ${}",
    }


def test_what_a_variable_holds_is_not_expanded_again() -> None:
    assert expand("${NESTED}", PARENT) == "${TOKEN}"


def test_the_table_wins_over_what_we_would_set() -> None:
    made = child_environment(PARENT, values={"HOME": "/chosen", "PATH": "/opt"}, home="/h")
    assert made == {"PATH": "/opt", "HOME": "/chosen"}


def test_without_a_path_of_our_own_the_child_gets_the_usual_one() -> None:
    assert child_environment({}) == {"PATH": "/usr/local/bin:/usr/bin:/bin"}


@pytest.mark.parametrize(
    ("names", "values"),
    [(["MISSING"], {}), ([], {"A": "x${MISSING}"})],
)
def test_a_missing_variable_is_named(names: list[str], values: dict[str, str]) -> None:
    with pytest.raises(VariableRefused) as refused:
        child_environment(PARENT, names=names, values=values)
    assert refused.value.code == "variable_refused"
    assert "MISSING" in refused.value.message
    assert "MISSING" in refused.value.way_out


@pytest.mark.parametrize("name", ["", "A=B", "1A", "A B", "A\0", "A-B"])
def test_what_is_not_a_variable_is_refused(name: str) -> None:
    with pytest.raises(VariableRefused):
        child_environment({**PARENT, name: "x"}, names=[name])
    with pytest.raises(VariableRefused):
        child_environment(PARENT, values={name: "x"})


def test_a_value_that_no_program_can_receive_is_refused() -> None:
    with pytest.raises(VariableRefused):
        child_environment(PARENT, values={"A": "x\0y"})


@settings(max_examples=100)
@given(st.dictionaries(st.from_regex(r"\A[A-Z]{1,8}\Z"), st.text(max_size=8)))
def test_nothing_of_the_parent_passes_unasked(parent: dict[str, str]) -> None:
    assert set(child_environment(parent)) == {"PATH"}


def test_what_others_sent_is_never_expanded() -> None:
    made = child_environment({"DBPASS": "hunter2"}, literal={"TRACE": "${DBPASS}"})
    assert made["TRACE"] == "${DBPASS}"
    with pytest.raises(VariableRefused):
        child_environment({}, literal={"TRACE": "a\0b"})
