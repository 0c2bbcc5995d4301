"""Agents that act on their own time, seen from outside: files on disk, and answers."""

from __future__ import annotations

import json
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.house import House, house, until

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from pathlib import Path

    from tests.contract.house import Guest

pytestmark = [pytest.mark.requirement("C6.2"), pytest.mark.needs("bwrap")]
CONFIG = """
[schedules]
min_interval_secs = 1

[[triggers]]
name = "notes"
event = "note.*"
agent = "scribe"
message = "{event_type}"
"""
SCRIBE = """
async def run(message, context):
    if message.startswith("publish "):
        told = await context.call("event_publish", {"event_type": message.split()[1]})
        return told.text
    if message.startswith("every"):
        made = await context.call("schedule_create", {"description": "again", "schedule": message})
        return made.text
    await context.call("file_write", {"path": message + ".txt", "content": message})
    return "written"
"""
MANIFEST = """
name = "scribe"
module = "python:agent.py"
[capabilities]
tools = ["file_write", "schedule_create", "schedule_list", "event_publish"]
[policy]
project = "default"
"""
FILES = {"agents/scribe/agent.toml": MANIFEST, "agents/scribe/agent.py": SCRIBE}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    """A node with an agent that writes files."""
    with house(tmp_path_factory.mktemp("own"), CONFIG, files=FILES) as running:
        yield running


def written(node: House, name: str) -> Path:
    return node.daemon.home.path / "workspaces" / "agent-scribe" / f"{name}.txt"


def shown(who: Guest, schedule: str) -> dict[str, Any]:
    return who.ask("GET", f"/api/schedules/{schedule}").json


def test_a_schedule_really_fires_and_its_effect_is_a_file_on_disk(node: House) -> None:
    asked = {"description": "once", "schedule": "in 1 seconds", "agent": "scribe"}
    made = node.call("schedule_create", asked).json
    assert made["outcome"] == "ok", made
    schedule = made["structured"]["id"]
    until(lambda: written(node, "once").exists())
    until(lambda: shown(node, schedule)["last_run"]["outcome"] == "completed")
    ran = shown(node, schedule)
    assert (ran["state"], ran["runs"], ran["next_run"]) == ("ended", 1, None)
    task = node.ask("GET", f"/api/a2a/tasks/{ran['last_run']['task']}").json
    assert task["state"] == "completed"
    listed = node.call("schedule_list").json["structured"]["schedules"]
    assert schedule in [one["id"] for one in listed]


def test_one_that_repeats_runs_again_and_again_until_it_is_deleted(node: House) -> None:
    asked = {"description": "often", "schedule": "every 1 seconds", "agent": "scribe"}
    schedule = node.ask("POST", "/api/schedules", asked).json["id"]
    until(lambda: shown(node, schedule)["runs"] >= 3)
    gone = node.call("schedule_delete", {"id": schedule})
    assert gone.json["structured"] == {"id": schedule}
    assert node.ask("GET", f"/api/schedules/{schedule}").status == 404


def test_an_agent_makes_a_job_for_itself_that_whoever_asked_it_can_see(node: House) -> None:
    told = node.call("agent:scribe", {"message": "every day at noon"}).json
    assert told["content"][0]["text"].startswith("Created schedule_"), told
    (own,) = [one for one in _all(node) if one["owner"] == "agent:scribe"]
    assert (own["root"], own["agent"], own["cron"]) == ("key:admin", "scribe", "0 12 * * *")
    ran = node.ask("POST", f"/api/schedules/{own['id']}/run", {})
    assert ran.status == 200
    until(lambda: written(node, "again").exists())
    assert node.guest("stranger").ask("GET", "/api/schedules").json["schedules"] == []


def _all(node: House) -> list[dict[str, Any]]:
    return node.ask("GET", "/api/schedules").json["schedules"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"schedule": "every blue moon"}, "for example: every 15 minutes"),
        ({"schedule": "every 90 minutes", "timezone": "Mars/Olympus"}, "no time zone"),
        ({"agent": "nobody"}, "No agent nobody is there"),
        ({"schedule": "at 2020-01-01T00:00"}, "never comes"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused_with_what_is_understood(
    node: House, wrong: dict[str, str], said: str
) -> None:
    asked = {"description": "x", "schedule": "every hour", "agent": "scribe", **wrong}
    result = node.call("schedule_create", asked).json
    assert result["outcome"] == "error"
    assert said in result["content"][0]["text"]
    problem = node.ask("POST", "/api/schedules", asked)
    assert (problem.status, problem.rule) == (422, "schedule")
    assert said in problem.json["detail"]


@pytest.mark.parametrize(
    ("tool", "wrong"),
    [
        ("schedule_create", {"description": "x"}),
        ("schedule_create", {"description": "x" * 5000, "schedule": "every hour"}),
        ("schedule_create", {"description": "x", "schedule": "every hour", "overlap": "both"}),
        ("schedule_list", {"all": True}),
        ("schedule_delete", {}),
    ],
)
def test_what_is_no_schedule_at_all_is_refused(
    node: House, tool: str, wrong: dict[str, Any]
) -> None:
    refused = node.call(tool, wrong)
    assert (refused.status, refused.json["title"]) == (422, "invalid arguments")


@pytest.mark.parametrize("tool", ["schedule_create", "schedule_list", "schedule_delete"])
def test_without_the_grant_there_is_no_such_tool(node: House, tool: str) -> None:
    reader = node.guest(f"without-{tool.replace('_', '-')}", tools=["system_time"])
    refused = reader.call(tool)
    assert (refused.status, refused.rule) == (404, "unknown_tool")
    asked = {"description": "x", "schedule": "every hour", "agent": "scribe"}
    assert reader.ask("POST", "/api/schedules", asked).status == 404


def test_another_callers_schedule_is_not_there_and_an_auditor_only_looks(node: House) -> None:
    asked = {"description": "x", "schedule": "every hour", "agent": "scribe"}
    schedule = node.ask("POST", "/api/schedules", asked).json["id"]
    path = f"/api/schedules/{schedule}"
    other, auditor = node.guest("other"), node.guest("auditor", role="auditor")
    for method, act in (("GET", ""), ("DELETE", ""), ("POST", "/run"), ("POST", "/pause")):
        body = dict[str, str]() if method == "POST" else None
        assert other.ask(method, f"{path}{act}", body).status == 404
    assert auditor.ask("GET", path).status == 200
    assert auditor.ask("DELETE", path).status == 409
    assert node.ask("POST", f"{path}/pause", {}).json["state"] == "paused"
    assert node.ask("POST", f"{path}/pause", {}).status == 409
    assert node.ask("POST", f"{path}/resume", {}).json["state"] == "active"
    assert node.ask("DELETE", path).status == 200
    acts = [one["act"] for one in node.records(schedule=schedule, event="schedule_changed")]
    assert acts == ["created", "paused", "resumed", "deleted"]


def test_the_job_of_a_key_that_is_revoked_is_refused_and_says_so(node: House) -> None:
    guest = node.guest("leaver")
    asked = {"description": "late", "schedule": "every 1 seconds", "agent": "scribe"}
    schedule = guest.ask("POST", "/api/schedules", asked).json["id"]
    assert node.ask("DELETE", "/api/keys/leaver").status == 200
    until(lambda: shown(node, schedule)["state"] == "paused")
    left = shown(node, schedule)
    assert "refused 5 times in a row: The key of key:leaver is not in force" in left["reason"]
    assert left["last_run"]["outcome"] == "refused"


def test_an_event_is_seen_from_outside_and_starts_an_agent_that_writes_a_file(node: House) -> None:
    with closing(node.daemon.connect()) as connection:
        headers = {"Authorization": f"Bearer {node.key}", "Accept": "text/event-stream"}
        connection.request("GET", "/api/events", headers=headers)
        live = connection.getresponse()
        assert live.status == 200
        told = node.call("event_publish", {"event_type": "note.taken", "payload": {"n": 7}}).json
        assert told["structured"]["triggered"] == ["notes"], told
        (event,) = islice(seen(live, "event_published"), 1)
    assert (event["event"], event["payload"]) == ("note.taken", {"n": 7})
    until(lambda: written(node, "note.taken").exists())


def seen(live: Iterable[bytes], kind: str) -> Iterator[dict[str, Any]]:
    """What a stream tells of events of this kind."""
    for line in live:
        if line.startswith(b"data: "):
            body = json.loads(line.removeprefix(b"data: "))
            if body.get("event_type") == kind:
                yield body


def test_an_agent_that_would_start_itself_is_refused_with_a_reason(node: House) -> None:
    # The agent publishes what starts it: the run of that is one further down in the same chain.
    node.configure(
        f'{node.configuration}\n[[triggers]]\nname = "self"\nevent = "self.*"\nagent = "scribe"\n'
    )
    told = node.call("agent:scribe", {"message": "publish self.made"}).json
    assert "it starts self" in told["content"][0]["text"], told
    until(lambda: node.records(event="trigger_refused"))
    (refused,) = node.records(event="trigger_refused")
    assert "agent:scribe is already waiting further up in this chain" in refused["reason"]
    task = node.ask("GET", f"/api/a2a/tasks/{refused['task']}").json
    assert task["state"] == "failed"
    assert not written(node, "self.made").exists()


@pytest.mark.parametrize(
    "wrong",
    [{}, {"event_type": ""}, {"event_type": "two words"}, {"event_type": "a", "payload": 7}],
)
def test_what_is_no_event_is_refused(node: House, wrong: dict[str, Any]) -> None:
    refused = node.call("event_publish", wrong)
    assert (refused.status, refused.json["title"]) == (422, "invalid arguments")
    guest = node.guest(f"mute-{len(str(wrong))}", tools=["system_time"])
    assert guest.call("event_publish", wrong).rule == "unknown_tool"
