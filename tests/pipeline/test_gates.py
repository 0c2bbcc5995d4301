"""The six gates on the one path: the seed's order, words and conditions, and what opens each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from openfang.app.admin import Admin
from openfang.core.calls import Mode, Role
from openfang.core.errors import AuditUnavailable, GuardTripped, Parked, PolicyViolation
from openfang.core.ids import Kind
from openfang.core.keys import AdminToken, Key, Scope, Way
from openfang.core.tools import Risk, Trust
from openfang.pipeline.explain import explain
from openfang.policy.context import NO_WISH, Wish
from openfang.testing import ManualClock, TableSource, open_test_app

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from openfang.core.calls import Call
    from openfang.core.decisions import Explanation, Verdict
    from openfang.testing import OpenApp

pytestmark = pytest.mark.requirement("C7.6")
SEED = '[policy]\nprofile = "seed"\n'
GATES = ("disabled", "mode", "spec_frozen", "project", "policy", "admin_token", "trust", "grants")
PLANNING = Wish(mode=Mode.PLANNING)
NO_TAGS = frozenset[str]()
WRITING = frozenset({"fs.write"})
SPEC = b"write the file, then stop"


async def act(arguments: Mapping[str, Any]) -> str:
    return f"did {sorted(arguments)}"


def server(**tools: Mapping[str, Any]) -> TableSource:
    """A server with these tools; what is not said of one is harmless."""
    harmless = {"risk": Risk.LOW, "tags": NO_TAGS}
    return TableSource(
        Kind.MCP, "demo", {name: ({**harmless, **facts}, act) for name, facts in tools.items()}
    )


@dataclass(frozen=True)
class Credentials:
    spec: str
    token: str


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """How a tool is called."""

    tool: str = ""
    wish: Wish = NO_WISH
    homeless: bool = False
    blacklist: frozenset[str] = frozenset()
    spec: bool = False
    token: bool = False

    def make(self, app: OpenApp, held: Credentials) -> Call:
        caller = replace(
            app.caller,
            projects=() if self.homeless else app.caller.projects,
            blacklist=self.blacklist,
            spec=held.spec if self.spec else None,
        )
        token = held.token if self.token else None
        return app.make(
            f"mcp:demo:{self.tool}", {}, caller=caller, wish=self.wish, admin_token=token
        )


@dataclass(frozen=True, kw_only=True)
class Row(Attempt):
    """A tool, how it is called, and what is said to it: gate, reason, code; nothing if it runs."""

    facts: Mapping[str, Any]
    said: tuple[str, str, str] = ("", "", "")


async def said_to(app: OpenApp, call: Call) -> tuple[str, str, str]:
    """Make a call; answer with the gate, reason and code of its refusal."""
    try:
        await app.invoke(call)
    except PolicyViolation as violation:
        (denied,) = [v for v in violation.verdicts if v.verdict == "deny" and v.way_out]
        return denied.gate, violation.message.removeprefix("Policy violation: "), violation.rule
    return "", "", ""


async def answer(
    app: OpenApp, question: str, *, approve: bool = True, scope: Scope = Scope.ONCE
) -> None:
    await app.parts.approvals.answer(
        question, approve=approve, by=app.caller.id, via=Way.API, scope=scope
    )


def refusal_in(explained: Explanation) -> Verdict:
    """The verdict that would end the call."""
    return next(v for v in explained.verdicts if v.verdict in {"deny", "ask"})


async def credentials(app: OpenApp) -> Credentials:
    admin = Admin(app.parts, app.caller)
    spec = await admin.freeze_spec("plan", SPEC, "default")
    _, token = await admin.create_token(AdminToken(id="", name="second"), ttl=60)
    return Credentials(spec.hash, token)


def fs_write(risk: Risk = Risk.LOW, **more: Any) -> dict[str, Any]:
    return {"risk": risk, "tags": WRITING, **more}


OFF = ("disabled", "Tool is disabled", "tool_disabled")
HELD = ("disabled", "Tool is disabled", "tool_held")
MODE = ("mode", "Planning mode cannot use tools with side effects", "planning_mode")
UNFROZEN = ("spec_frozen", "Execution mode requires spec_frozen=True", "spec_not_frozen")
HOMELESS = ("project", "Tool requires project_id", "project_missing")
NO_TOKEN = ("admin_token", "Tool requires admin_token", "admin_token_missing")


def blacklisted(tag: str) -> tuple[str, str, str]:
    return "policy", f"Side effect {tag} is blacklisted", "side_effect_blacklisted"


READS = frozenset({"fs.read", "database.read", "network.dns", "cloud.key_read"})
TABLE: dict[str, Row] = {
    # 1: switched off, or held back
    "off": Row(facts={"enabled": False}, said=OFF),
    "held": Row(facts={"hold": "it changed"}, said=HELD),
    "on": Row(facts={}),
    # 2: planning and an effect; a read is none
    "plan_effect": Row(facts=fs_write(), wish=PLANNING, said=MODE),
    "plan_unknown": Row(facts={"tags": frozenset({"unknown"})}, wish=PLANNING, said=MODE),
    "plan_reads": Row(facts={"tags": READS}, wish=PLANNING),
    "plan_risky_read": Row(facts={"risk": Risk.CRITICAL, "tags": READS}, wish=PLANNING),
    # 3: from HIGH on a frozen spec; CRITICAL is above HIGH, though not in the alphabet
    "spec_low": Row(facts=fs_write(Risk.LOW)),
    "spec_medium": Row(facts=fs_write(Risk.MEDIUM)),
    "spec_high": Row(facts=fs_write(Risk.HIGH), said=UNFROZEN),
    "spec_critical": Row(facts=fs_write(Risk.CRITICAL), said=UNFROZEN),
    "spec_high_frozen": Row(facts=fs_write(Risk.HIGH), spec=True),
    "spec_critical_frozen": Row(facts=fs_write(Risk.CRITICAL), spec=True),
    "spec_made_up": Row(facts=fs_write(Risk.HIGH), wish=Wish(spec_hash="0" * 64), said=UNFROZEN),
    # 4: from MEDIUM on a project
    "project_low": Row(facts={"risk": Risk.LOW}, homeless=True),
    "project_medium": Row(facts={"risk": Risk.MEDIUM}, homeless=True, said=HOMELESS),
    "project_high": Row(facts=fs_write(Risk.HIGH), spec=True, homeless=True, said=HOMELESS),
    "project_critical": Row(facts=fs_write(Risk.CRITICAL), spec=True, homeless=True, said=HOMELESS),
    # 5: a tag on the caller's list, the call's, the server's or everybody's; reads count here
    "black_caller": Row(facts=fs_write(), blacklist=WRITING, said=blacklisted("fs.write")),
    "black_call": Row(facts=fs_write(), wish=Wish(blacklist=WRITING), said=blacklisted("fs.write")),
    "black_server": Row(facts=fs_write(denied_tags=WRITING), said=blacklisted("fs.write")),
    "black_all": Row(facts={"tags": frozenset({"payments"})}, said=blacklisted("payments")),
    "black_read": Row(
        facts={"tags": READS}, blacklist=frozenset({"fs.read"}), said=blacklisted("fs.read")
    ),
    "black_other": Row(facts=fs_write(), blacklist=frozenset({"fs.delete"})),
    # 6: a second credential
    "admin_none": Row(facts={"requires_admin_token": True}, said=NO_TOKEN),
    "admin_given": Row(facts={"requires_admin_token": True}, token=True),
}


async def test_each_gate_refuses_in_the_seeds_words_and_under_its_conditions(
    tmp_path: Path,
) -> None:
    source = server(**{name: row.facts for name, row in TABLE.items()})
    config = SEED + 'blacklist = ["payments"]\n'
    async with open_test_app(tmp_path, config=config, sources=[source]) as app:
        held = await credentials(app)
        said = {
            name: await said_to(app, replace(row, tool=name).make(app, held))
            for name, row in TABLE.items()
        }
    assert said == {name: row.said for name, row in TABLE.items()}
    reached = [admitted.tool.name for admitted in source.calls]
    assert reached == [name for name, row in TABLE.items() if not row.said[0]]


# Everything is wrong with the first, and one thing less with each that follows.
BAD = Attempt(tool="off", wish=PLANNING, homeless=True, blacklist=WRITING)
STEPS = {
    "disabled": BAD,
    "mode": (enabled := replace(BAD, tool="on")),
    "spec_frozen": (executing := replace(enabled, wish=NO_WISH)),
    "project": (planned := replace(executing, spec=True)),
    "policy": (settled := replace(planned, homeless=False)),
    "admin_token": (listed := replace(settled, blacklist=frozenset[str]())),
    "": replace(listed, token=True),
}
WORST = fs_write(Risk.CRITICAL, requires_admin_token=True)


@pytest.mark.requirement("C7.13", "C7.14")
async def test_the_first_refusal_decides_and_explain_knows_them_all(tmp_path: Path) -> None:
    source = server(off={**WORST, "enabled": False}, on=WORST)
    async with open_test_app(tmp_path, config=SEED, sources=[source]) as app:
        held = await credentials(app)
        for place, (gate, step) in enumerate(STEPS.items()):
            explained = await explain(app.parts.pipeline, step.make(app, held))
            denied = {v.gate for v in explained.verdicts if v.verdict == "deny"}
            assert "not_reached" not in {v.verdict for v in explained.verdicts}
            if not gate:
                assert (explained.outcome, denied) == ("allow", set())
                await app.invoke(step.make(app, held))
                continue
            with pytest.raises(PolicyViolation) as caught:
                await app.invoke(step.make(app, held))
            verdicts = [(v.gate, v.verdict) for v in caught.value.verdicts]
            words = ["allow"] * place + ["deny"] + ["not_reached"] * (len(GATES) - place - 1)
            assert verdicts == list(zip(GATES, words, strict=True))
            assert refusal_in(explained) == caught.value.verdicts[place]
            later = set(GATES[place + 1 :]) - {"trust", "grants"}
            absent = {"spec_frozen"} if step.wish is PLANNING else set[str]()
            assert denied == {gate, *later} - absent
    assert source.reached == 1


@pytest.mark.requirement("C7.13")
async def test_each_refusal_is_recorded_with_every_gates_verdict(tmp_path: Path) -> None:
    async with open_test_app(tmp_path, config=SEED, sources=[server(x=fs_write(Risk.HIGH))]) as app:
        with pytest.raises(PolicyViolation):
            await app.call("mcp:demo:x")
        decision, violation = await app.events()
    assert (decision.event_type, decision.payload["decision"]) == ("policy_decision", "deny")
    assert [gate["gate"] for gate in decision.payload["gates"]] == list(GATES)
    assert [gate["verdict"] for gate in decision.payload["gates"]] == [
        "allow",
        "allow",
        "deny",
        *["not_reached"] * 5,
    ]
    assert (violation.event_type, violation.level) == ("policy_violation", "warning")
    assert violation.payload == {
        "step": "gate",
        "gate": "spec_frozen",
        "rule": "spec_not_frozen",
        "reason": "Policy violation: Execution mode requires spec_frozen=True",
        "labels": [],
        "arguments": {},
    }
    assert decision.payload["labels"] == []
    assert decision.call_id == violation.call_id


@pytest.mark.requirement("C7.14")
async def test_explain_changes_nothing(tmp_path: Path) -> None:
    config = "[limits]\ncells_per_minute = 10\nburst = 10\n"
    source = server(echo={}, risky=fs_write(Risk.HIGH))
    async with open_test_app(tmp_path, config=config, clock=ManualClock(), sources=[source]) as app:
        explained: list[Explanation] = []
        for tool in ["mcp:demo:echo"] * 10 + ["mcp:demo:risky"] * 10:
            call = app.make(tool, {}, run="r")
            explained.append(await explain(app.parts.pipeline, call))
        assert await app.events() == []
        assert source.reached == 0
        first = await app.invoke(app.make("mcp:demo:echo", {}, run="r"))
        await app.invoke(app.make("mcp:demo:echo", {"other": 1}, run="r"))
        with pytest.raises(GuardTripped) as caught:
            await app.invoke(app.make("mcp:demo:echo", {"third": 1}, run="r"))
        refused = await app.explain("mcp:demo:echo")
    assert [e.outcome for e in explained] == ["allow"] * 10 + ["ask"] * 10
    assert first.text == "did []"
    assert caught.value.rule == "rate_limit"
    first = refusal_in(refused)
    assert (first.gate, first.code) == ("guards", "rate_limit")


@pytest.mark.requirement("C7.7")
async def test_in_the_guided_profile_a_person_may_stand_in_for_a_spec(tmp_path: Path) -> None:
    source = server(x=fs_write(Risk.CRITICAL))
    async with open_test_app(tmp_path, sources=[source]) as app:
        admin = Admin(app.parts, app.caller)
        with pytest.raises(Parked) as parked:
            await app.call("mcp:demo:x", file="a")
        assert (await app.explain("mcp:demo:x", file="a")).outcome == "ask"
        await answer(app, parked.value.question_id)
        assert (await app.explain("mcp:demo:x", file="a")).outcome == "allow"
        with pytest.raises(Parked) as other:
            await app.call("mcp:demo:x", file="b")
        await app.call("mcp:demo:x", file="a")
        with pytest.raises(Parked) as again:
            await app.call("mcp:demo:x", file="a")
        spec = await admin.freeze_spec("plan", SPEC, "default")
        await app.invoke(app.make("mcp:demo:x", {}, wish=Wish(spec_hash=spec.hash)))
    assert parked.value.rule == "spec_not_frozen"
    assert len({parked.value.question_id, other.value.question_id, again.value.question_id}) == 3
    assert source.reached == 2


@pytest.mark.requirement("C7.10")
async def test_a_question_that_cannot_be_kept_is_not_asked(tmp_path: Path) -> None:
    source = server(x=fs_write(Risk.CRITICAL))
    async with open_test_app(tmp_path, sources=[source]) as app:
        before = app.parts.writer.head
        connection = app.writer._database.connection
        connection.execute("PRAGMA query_only = ON")
        with pytest.raises(AuditUnavailable):
            await app.call("mcp:demo:x", file="a")
        connection.execute("PRAGMA query_only = OFF")
        assert (app.parts.writer.head, source.reached) == (before, 0)
        with pytest.raises(Parked):
            await app.call("mcp:demo:x", file="a")


@pytest.mark.requirement("C7.7")
async def test_in_the_guided_profile_a_standing_grant_may_too(tmp_path: Path) -> None:
    source = server(x=fs_write(Risk.HIGH))
    async with open_test_app(tmp_path, sources=[source]) as app:
        with pytest.raises(Parked) as parked:
            await app.call("mcp:demo:x")
        await answer(app, parked.value.question_id, scope=Scope.RULE)
        for file in "abc":
            await app.call("mcp:demo:x", file=file)
    assert source.reached == 3


@pytest.mark.requirement("C7.7")
async def test_no_question_helps_where_another_gate_refuses(tmp_path: Path) -> None:
    source = server(x=fs_write(Risk.HIGH, denied_tags=WRITING))
    async with open_test_app(tmp_path, sources=[source]) as app:
        with pytest.raises(PolicyViolation) as caught:
            await app.call("mcp:demo:x")
        written = {event.event_type for event in await app.events()}
    assert caught.value.rule == "side_effect_blacklisted"
    assert {v.gate: v.verdict for v in caught.value.verdicts}["spec_frozen"] == "ask"
    assert "approval_requested" not in written


@pytest.mark.requirement("C7.7")
async def test_only_a_token_in_force_for_this_tool_opens_the_sixth_gate(tmp_path: Path) -> None:
    source = server(x={"requires_admin_token": True})
    async with open_test_app(tmp_path, sources=[source]) as app:
        admin = Admin(app.parts, app.caller)

        async def token(name: str, *, ttl: float | None = None, tools: str = "*") -> str:
            made = AdminToken(id="", name=name, tools=(tools,))
            return (await admin.create_token(made, ttl=ttl))[1]

        revoked = await token("revoked")
        await admin.revoke_key("revoked")
        _, key = await admin.create_key(Key(id="", name="second", role=Role.ADMIN))
        tokens = {
            "none": None,
            "empty": "",
            "junk": "anything",
            "expired": await token("expired", ttl=0),
            "revoked": revoked,
            "of another tool": await token("other", tools="mcp:demo:y"),
            "an admin's key": key,
            "good": await token("good", ttl=60),
            "good for the server": await token("wide", tools="mcp:demo:*"),
        }
        said = {
            name: await said_to(app, app.make("mcp:demo:x", {}, admin_token=secret))
            for name, secret in tokens.items()
        }
        last = str(await app.events())
    good = {"good", "good for the server"}
    assert said == {n: ("", "", "") if n in good else NO_TOKEN for n in tokens}
    assert source.reached == 2
    assert not [name for name, secret in tokens.items() if secret and secret in last]


@pytest.mark.requirement("C7.7")
async def test_a_spec_counts_for_its_own_project_only(tmp_path: Path) -> None:
    source = server(x=fs_write(Risk.HIGH))
    async with open_test_app(tmp_path, config=SEED, sources=[source]) as app:
        spec = await Admin(app.parts, app.caller).freeze_spec("plan", SPEC, "theirs")
        both = replace(app.caller, projects=("default", "theirs"))
        said: dict[str, str] = {}
        for project in both.projects:
            wish = Wish(project_id=project, spec_hash=spec.hash)
            call = app.make("mcp:demo:x", {}, caller=both, wish=wish)
            said[project] = (await explain(app.parts.pipeline, call)).outcome
        unbound = app.make("mcp:demo:x", {}, wish=Wish(project_id="theirs", spec_hash=spec.hash))
        with pytest.raises(PolicyViolation) as caught:
            await app.invoke(unbound)
    assert said == {"default": "deny", "theirs": "allow"}
    assert caught.value.rule == "context.project"


@pytest.mark.requirement("C11.4")
@pytest.mark.parametrize("profile", ["guided", "seed"])
async def test_what_a_source_of_low_trust_changes_a_person_or_a_token_allows(
    tmp_path: Path, profile: str
) -> None:
    source = server(
        low=fs_write(trust=Trust.LOW),
        reads={"tags": READS, "trust": Trust.LOW},
        medium=fs_write(trust=Trust.MEDIUM),
    )
    config = f'[policy]\nprofile = "{profile}"\n'
    async with open_test_app(tmp_path, config=config, sources=[source]) as app:
        with pytest.raises(Parked) as parked:
            await app.call("mcp:demo:low")
        await app.call("mcp:demo:reads")
        await app.call("mcp:demo:medium")
        held = await credentials(app)
        await app.invoke(app.make("mcp:demo:low", {}, admin_token=held.token))
        with pytest.raises(Parked):
            await app.invoke(app.make("mcp:demo:low", {}, admin_token="junk"))
        await answer(app, parked.value.question_id, approve=False)
        with pytest.raises(PolicyViolation) as denied:
            await app.call("mcp:demo:low")
    assert (parked.value.rule, denied.value.rule) == ("low_trust", "approval_denied")
    assert [admitted.tool.name for admitted in source.calls] == ["reads", "medium", "low"]
