"""`openfang memory`, in process and over a daemon: the same words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

pytestmark = pytest.mark.requirement("C6.2")


def test_what_is_remembered_is_listed_found_shown_and_forgotten(openfang: Cli) -> None:
    for key, value in {"seen/1": "a red rose", "seen/2": {"town": "Lisboa\x1b[2J"}}.items():
        openfang.call("memory_store", key=key, value=value)
    shown = openfang("memory", "list", "--limit", "2").out.splitlines()
    assert shown[::3] == ["seen/2", "seen/1"]
    assert shown[4] == "  a red rose"
    assert shown[5].startswith("  stored 20")
    assert shown[5].endswith("by key:admin for key:admin, labels user_input")
    first = openfang("memory", "list", "--limit", "1", "--json").json
    second = openfang("memory", "list", "--limit", "1", "--after", str(first["after"]), "--json")
    assert [one["key"] for one in second.json["memories"]] == ["seen/1"]

    found = openfang("memory", "search", "roses", "ROSE").out
    assert found.splitlines()[:2] == ["seen/1", "  a red rose"]
    assert openfang("memory", "search", "lis", "--json").json["memories"][0]["key"] == "seen/2"
    nothing = openfang("memory", "search", "nowhere")
    assert (nothing.code, nothing.out) == (0, "")
    assert "Nothing of that is remembered in key-admin." in nothing.err

    whole = openfang("memory", "show", "seen/2").out
    assert "stored by  key:admin\n" in whole
    assert '{"town":"Lisboa\\u001b[2J"}' in whole
    forgotten = openfang("memory", "forget", "seen/2")
    assert (forgotten.code, forgotten.out) == (0, "seen/2 is forgotten.\n")
    for act in ("show", "forget"):
        again = openfang("memory", act, "seen/2")
        assert (again.code, again.out) == (1, "")
        assert "Nothing is remembered under seen/2." in again.err
        assert "openfang memory list" in again.err
    assert openfang("memory", "forget", "seen/1", "--json").json["value"] == "a red rose"


def test_a_space_of_somebody_else_is_an_administrators(openfang: Cli) -> None:
    granted = ("--tools", "memory_*", "--memory-read", "*", "--memory-write", "*")
    secret = openfang("keys", "create", "rememberer", *granted, "--json").json["secret"]
    own = {"OPENFANG_API_KEY": secret}
    assert openfang.call("memory_store", env=own, key="mine", value=1).code == 0
    assert openfang("memory", "show", "mine", env=own).code == 0
    assert openfang("memory", "show", "mine").code == 1
    refused = openfang("memory", "list", "--space", "key-admin", env=own)
    assert (refused.code, refused.out) == (3, "")
    seen = openfang("memory", "show", "mine", "--space", "key-rememberer", "--json").json
    assert (seen["value"], seen["stored_by"]) == (1, "key:rememberer")
    assert openfang("memory", "list", "--agent", "nobody").code == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("list", "--limit", "0"), "--limit is 0"),
        (("list", "--after", "-1"), "--after is -1"),
        (("search", ""), "The words have 0 characters"),
        (("search", "x" * 2000), "The words have 2000 characters"),
        (("search",), "search"),
    ],
)
def test_what_cannot_be_asked_is_told(openfang: Cli, words: tuple[str, ...], told: str) -> None:
    refused = openfang("memory", *words)
    assert (refused.code, refused.out) == (2, "")
    assert told in refused.err
