"""What is bound to a key, and what is refused because of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from openfang import open_local
from openfang.core.keys import Key

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

pytestmark = pytest.mark.requirement("C7.7")


def key_of(openfang: Cli, name: str, *options: str) -> dict[str, str]:
    made = openfang("keys", "create", name, *options)
    assert made.code == 0, made.err
    return {"OPENFANG_API_KEY": made.out.strip()}


def state_of(openfang: Cli, name: str) -> str:
    return next(k["state"] for k in openfang("keys", "list", "--json").json if k["name"] == name)


@pytest.mark.requirement("C7.6")
def test_a_planning_key_is_refused_what_has_side_effects(openfang: Cli) -> None:
    planner = key_of(openfang, "planner", "--mode", "planning")
    ran = openfang.call("file_write", env=planner, path="a", content="b")
    assert ran.code == 3
    assert ran.json["status"] == 403
    wanted = "Policy violation: Planning mode cannot use tools with side effects"
    assert ran.json["detail"] == wanted
    said = [(gate["gate"], gate["verdict"]) for gate in ran.json["gates"]]
    assert said[:3] == [("disabled", "allow"), ("mode", "deny"), ("spec_frozen", "not_reached")]
    more = openfang.call("file_write", "--mode", "execution", env=planner, path="a", content="b")
    assert (more.code, more.json["rule"]) == (3, "context.mode")
    assert openfang.call("file_list", env=planner).code in {0, 4}
    assert not (openfang.home / "workspaces/key-planner/a").exists()


@pytest.mark.requirement("C7.6")
def test_people_read_one_sentence_and_the_way_out(openfang: Cli) -> None:
    ran = openfang(
        "tools", "call", "file_write", "--mode", "planning", "--args", '{"path":"a","content":"b"}'
    )
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.splitlines() == [
        "error: Policy violation: Planning mode cannot use tools with side effects",
        "way out: call it with --mode execution, by a key bound to it",
    ]


@pytest.mark.requirement("C7.6")
def test_a_blacklisted_side_effect_is_refused_by_key_by_option_and_by_configuration(
    fresh: Cli,
) -> None:
    wanted = "Policy violation: Side effect fs.write is blacklisted"
    careful = key_of(fresh, "careful", "--blacklist", "fs.write")
    by_key = fresh.call("file_write", env=careful, path="a", content="b")
    by_option = fresh.call("file_write", "--blacklist", "fs.write", path="a", content="b")
    fresh.configure("[limits]\nburst = 500")
    text = (fresh.home / "config.toml").read_text()
    (fresh.home / "config.toml").write_text(
        text.replace("[policy]", '[policy]\nblacklist = ["fs.write"]')
    )
    by_configuration = fresh.call("file_write", path="a", content="b")
    for ran in (by_key, by_option, by_configuration):
        assert (ran.code, ran.json["detail"]) == (3, wanted)


@pytest.mark.requirement("C7.6")
def test_a_project_that_is_not_bound_cannot_be_chosen(openfang: Cli) -> None:
    ran = openfang.call("file_write", "--project", "other", path="a", content="b")
    assert (ran.code, ran.json["rule"]) == (3, "context.project")


@pytest.mark.requirement("C7.6")
def test_without_a_project_only_harmless_tools_run(fresh: Cli) -> None:
    async def make() -> str:
        async with open_local({"OPENFANG_HOME": str(fresh.home)}) as local:
            _, secret = await local.create_key(Key(id="", name="homeless"))
            return secret

    secret = anyio.run(make)
    homeless = {"OPENFANG_API_KEY": secret}
    ran = fresh.call("file_write", env=homeless, path="a", content="b")
    assert (ran.code, ran.json["detail"]) == (3, "Policy violation: Tool requires project_id")
    assert fresh.call("system_time", env=homeless).code == 0


@pytest.mark.requirement("C18.1", "C7.1")
def test_an_unknown_a_revoked_and_an_expired_key_are_nobodys(openfang: Cli) -> None:
    revoked = key_of(openfang, "gone")
    expired = key_of(openfang, "short", "--ttl", "1s")
    assert openfang.call("system_time", env=revoked).code == 0
    assert openfang("keys", "revoke", "gone").code == 0
    while state_of(openfang, "short") != "expired":
        pass
    for key in (revoked, expired, {"OPENFANG_API_KEY": "of_made_up"}):
        ran = openfang.call("system_time", env=key)
        assert (ran.code, ran.json["status"], ran.json["rule"]) == (3, 401, "unauthenticated")
    assert state_of(openfang, "gone") == "revoked"


@pytest.mark.requirement("C7.3", "C4.6")
def test_a_tool_outside_the_grant_does_not_exist_for_the_key(openfang: Cli) -> None:
    reader = key_of(openfang, "reader", "--tools", "file_read", "--tools", "builtin:file_list")
    listed = openfang("tools", "list", "--json", env=reader).json
    assert [tool["name"] for tool in listed] == ["file_list", "file_read"]
    hidden = openfang.call("shell_exec", env=reader, command="ls")
    unknown = openfang.call("shall_exec", env=reader, command="ls")
    assert hidden.out.replace("shell", "shall") == unknown.out


@pytest.mark.requirement("C6.1")
def test_what_is_not_granted_is_refused_before_it_runs(openfang: Cli, tmp_path: Path) -> None:
    plain = key_of(openfang, "plain")
    granted = key_of(openfang, "granted", "--memory-write", "mine.*", "--shell", "echo *")
    assert openfang.call("memory_store", env=plain, key="mine.a", value=1).code == 3
    assert openfang.call("memory_store", env=granted, key="mine.a", value=1).code == 0
    assert openfang.call("memory_store", env=granted, key="theirs", value=1).code == 3
    plan = tmp_path / "plan"
    plan.write_text("grants")
    spec = openfang("spec", "freeze", str(plan)).out.strip()
    echo = openfang.call("shell_exec", "--spec", spec, env=granted, command="echo hello")
    date = openfang.call("shell_exec", "--spec", spec, env=granted, command="date")
    assert (echo.code, date.code) == (0, 3)


@pytest.mark.requirement("C12.3")
def test_a_key_with_a_limit_of_its_own_is_held_to_it(openfang: Cli) -> None:
    slow = key_of(openfang, "slow", "--limit", "10")
    lines = '{"tool": "system_time"}\n' * 3
    ran = openfang("tools", "batch", "-", stdin=lines, env=slow)
    assert [line.get("rule") for line in ran.lines] == [None, None, "rate_limit"]
    assert ran.lines[2]["retry_after"] > 0


def test_only_an_administrator_manages_and_reads_the_log(openfang: Cli) -> None:
    plain = key_of(openfang, "worker")
    commands = {
        ("keys", "list"): "admin_only",
        ("keys", "create", "more"): "admin_only",
        ("audit", "tail"): "role",
        ("approvals", "approve", "question_1"): "role",
    }
    for command, rule in commands.items():
        ran = openfang(*command, "--json", env=plain)
        assert (ran.code, ran.json["rule"]) == (3, rule)


def test_an_auditor_reads_the_log_and_an_approver_answers_and_neither_manages(
    openfang: Cli,
) -> None:
    auditor = key_of(openfang, "watcher", "--role", "auditor")
    approver = key_of(openfang, "boss", "--role", "approver")
    asked = openfang.call("shell_exec", command=["echo", "a role"]).json["approval"]
    assert openfang("audit", "tail", env=auditor).code == 0
    assert openfang("approvals", "approve", asked, env=auditor).code == 3
    assert openfang("approvals", "approve", asked, env=approver).code == 0
    assert openfang("audit", "tail", env=approver).code == 3
    assert {openfang("keys", "list", env=who).code for who in (auditor, approver)} == {3}


def test_a_key_that_is_bound_to_another_edge_is_refused_here(openfang: Cli) -> None:
    elsewhere = key_of(openfang, "remote", "--edge", "mcp")
    ran = openfang("tools", "list", "--json", env=elsewhere)
    assert (ran.code, ran.json["rule"]) == (3, "edge")
    here = key_of(openfang, "near", "--edge", "api", "--edge", "web")
    assert openfang("tools", "list", env=here).code == 0
    assert openfang("keys", "create", "far", "--edge", "moon").code == 2


def test_a_frozen_spec_lets_a_risky_tool_run_and_a_made_up_one_does_not(
    fresh: Cli, tmp_path: Path
) -> None:
    text = (fresh.home / "config.toml").read_text()
    (fresh.home / "config.toml").write_text(text.replace('"guided"', '"seed"'))
    plan = tmp_path / "plan.md"
    plan.write_text("Say hello.")
    frozen = fresh("spec", "freeze", str(plan))
    spec = frozen.out.strip()
    assert len(spec) == 64
    assert fresh("spec", "freeze", str(plan), "--json").json["hash"] == spec
    assert [found["name"] for found in fresh("spec", "list", "--json").json] == ["plan.md"]
    for hash_, code in ((spec, 0), ("0" * 64, 3), ("", 3)):
        ran = fresh.call("shell_exec", "--spec", hash_, command=["echo", "hello"])
        assert ran.code == code
    wanted = "Policy violation: Execution mode requires spec_frozen=True"
    assert (ran.json["detail"], ran.json["rule"]) == (wanted, "spec_not_frozen")
    other = fresh("spec", "freeze", str(plan), "--project", "other", "--json")
    assert (other.code, other.json["title"]) == (1, "conflict")
