"""Making, listing and ending keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

pytestmark = pytest.mark.requirement("C18.1")


def test_the_secret_stands_alone_on_stdout_and_is_kept_nowhere(openfang: Cli) -> None:
    ran = openfang("keys", "create", "ci")
    secret = ran.out.strip()
    assert ran.out == f"{secret}\n"
    assert secret.startswith("of_")
    assert "shown this once" in ran.err
    assert secret not in ran.err
    for file in openfang.home.rglob("*"):
        assert not file.is_file() or secret.encode() not in file.read_bytes()


def test_a_new_key_has_a_project_and_all_tools_and_nothing_else(openfang: Cli) -> None:
    body = openfang("keys", "create", "plain", "--json").json
    assert body.pop("secret").startswith("of_")
    assert body.pop("id").startswith("key_")
    assert body.pop("created_at")
    assert body == {
        "name": "plain",
        "kind": "key",
        "state": "in force",
        "role": "user",
        "edges": ["*"],
        "toolsets": ["*"],
        "agents": ["*"],
        "tools": ["*"],
        "network": [],
        "shell": [],
        "memory_read": [],
        "memory_write": [],
        "mode": "execution",
        "projects": ["default"],
        "spec": None,
        "blacklist": [],
        "cells_per_minute": None,
        "budget_usd_per_day": None,
        "expires_at": None,
        "revoked_at": None,
    }


def test_every_option_is_bound_to_the_key(openfang: Cli) -> None:
    options = (
        "--project a --project b --mode planning --tools file_* --network *.example.com "
        "--shell git* --memory-read notes.* --memory-write notes.* --blacklist fs.delete "
        "--limit 100 --ttl 7d"
    )
    openfang("keys", "create", "full", *options.split())
    body = next(key for key in openfang("keys", "list", "--json").json if key["name"] == "full")
    assert (body["projects"], body["mode"]) == (["a", "b"], "planning")
    assert (body["tools"], body["network"]) == (["file_*"], ["*.example.com"])
    assert (body["shell"], body["memory_read"]) == (["git*"], ["notes.*"])
    assert (body["blacklist"], body["cells_per_minute"]) == (["fs.delete"], 100)
    assert body["expires_at"]
    assert "secret" not in body


def test_a_key_is_bound_to_toolsets_and_agents_that_are_named(openfang: Cli) -> None:
    options = {
        "set": ("--toolset", "a", "--toolset", "b"),
        "one": ("--agent", "echo"),
        "two": ("--toolset", "a", "--agent", "echo"),
        "any": ("--toolset", "*", "--agent", "echo"),
    }
    for name, given in options.items():
        assert openfang("keys", "create", name, *given).code == 0
    made = {key["name"]: key for key in openfang("keys", "list", "--json").json}
    bound = {name: (made[name]["toolsets"], made[name]["agents"]) for name in options}
    assert bound == {
        "set": (["a", "b"], []),
        "one": ([], ["echo"]),
        "two": (["a"], ["echo"]),
        "any": (["*"], ["echo"]),
    }
    listed = openfang("keys", "list").out
    assert "a, agent echo" in listed
    assert openfang("keys", "create", "odd", "--toolset", "").code == 2
    token = openfang("keys", "create", "token", "--admin-token", "--agent", "echo")
    assert token.code == 2


def test_an_admin_key_manages_the_node(openfang: Cli) -> None:
    boss = openfang("keys", "create", "boss", "--admin").out.strip()
    ran = openfang("keys", "list", env={"OPENFANG_API_KEY": boss})
    assert ran.code == 0
    assert "admin key" in ran.out


@pytest.mark.requirement("C7.7")
def test_an_admin_token_is_a_second_credential_and_no_key(openfang: Cli) -> None:
    ran = openfang(
        "keys", "create", "second", "--admin-token", "--tools", "mcp:*", "--ttl", "1h", "--json"
    )
    body = ran.json
    assert body["secret"].startswith("oft_")
    assert (body["kind"], body["tools"], body["state"]) == ("admin_token", ["mcp:*"], "in force")
    used = openfang.call("system_time", env={"OPENFANG_API_KEY": body["secret"]})
    assert (used.code, used.json["rule"]) == (3, "unauthenticated")


@pytest.mark.parametrize(
    "options",
    [
        ("Bad Name",),
        ("-x",),
        ("x" * 65,),
        ("ok", "--blacklist", "fs.eat"),
        ("ok", "--ttl", "soon"),
        ("ok", "--ttl", "0s"),
        ("ok", "--ttl", "99999d"),
        ("ok", "--limit", "-1"),
        ("ok", "--limit", "0"),
        ("ok", "--limit", "nan"),
        ("ok", "--tools", ""),
        ("ok", "--mode", "dreaming"),
        ("ok", "--project", "../etc"),
        ("ok", "--spec", "made-up"),
        ("ok", "--admin-token", "--admin"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_sentence(
    openfang: Cli, options: tuple[str, ...]
) -> None:
    ran = openfang("keys", "create", *options)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: ")


def test_names_are_taken_once_and_for_all(openfang: Cli) -> None:
    assert openfang("keys", "create", "twice").code == 0
    again = openfang("keys", "create", "twice")
    assert (again.code, again.out) == (1, "")
    assert "openfang keys revoke twice" in again.err
    assert openfang("keys", "revoke", "twice").code == 0
    after = openfang("keys", "create", "twice")
    assert (after.code, after.out) == (1, "")
    assert "choose another name" in after.err
    assert openfang("keys", "create", "twice", "--admin-token").code == 0
    assert openfang("keys", "revoke", "nobody").code == 1
    assert openfang("keys", "create", "config").code == 1


def test_the_list_shows_edges_and_limit_where_they_are_set(openfang: Cli) -> None:
    openfang("keys", "create", "narrow", "--edge", "api", "--edge", "mcp", "--limit", "77")
    lines = openfang("keys", "list").out.splitlines()
    narrow = next(line for line in lines if line.startswith("narrow "))
    assert "api, mcp" in narrow
    assert " 77 " in narrow
    refused = openfang("keys", "create", "slow", "--limit", "4")
    assert (refused.code, "one call costs 5" in refused.err) == (1, True)
