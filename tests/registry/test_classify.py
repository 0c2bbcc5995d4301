from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.core.ids import Kind
from openfang.core.labels import Labels
from openfang.core.tools import EFFECT_TAGS, READ_TAGS, TAGS, Effect, Risk, Sink, Trust
from openfang.registry.classify import (
    Classified,
    Declared,
    ForeignTool,
    Overrides,
    classified_tool,
    classify,
    harm,
)
from openfang.registry.rules import DEFAULT_RULES, Reading
from openfang.registry.targets import targets_of

pytestmark = pytest.mark.requirement("C11.1", "C11.2")

NAMES = st.sampled_from(
    ["get_item", "read_file", "delete_file", "frobnicate", "send_email", "fetch", "run", "list_x"]
)
TRUSTS = st.sampled_from(Trust)
HINTS = st.dictionaries(
    st.sampled_from(["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]),
    st.booleans(),
)
SENTENCES = st.lists(
    st.sampled_from(
        [
            "Deletes all rows of a table.",
            "Run any shell command after login.",
            "Lists items created or updated recently.",
            "Safe, read-only, harmless.",
            "Only for the log, cache, temp and session.",
            "Sends an e-mail to the address.",
            "Does not delete anything.",
            "Execute a SELECT query on the database.",
            "Charges the customer's card",
        ]
    ),
    max_size=4,
).map(" ".join)


def foreign(name: str, **fields: Any) -> ForeignTool:
    return ForeignTool(kind=Kind.MCP, source="s", name=name, **fields)


def verdict(
    name: str,
    *,
    trust: Trust = Trust.MEDIUM,
    **fields: Any,
) -> Classified:
    return classify(foreign(name, **fields), trust=trust)


def schema(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def effects(found: Classified) -> frozenset[str]:
    return found.tags & EFFECT_TAGS


def at_least(higher: Classified, lower: Classified) -> bool:
    return (
        higher.risk >= lower.risk
        and higher.tags >= lower.tags
        and harm(higher.sink.effect) >= harm(lower.sink.effect)
        and higher.labels & lower.labels == lower.labels
        and higher.requires_admin_token >= lower.requires_admin_token
        and set(higher.sink.targets) >= set(lower.sink.targets)
    )


# The order of strength.


def test_the_operator_is_stronger_than_the_manifest_and_that_than_the_annotations() -> None:
    tool = foreign(
        "get_item",
        annotations={"destructiveHint": True},
        declared=Declared(risk=Risk.LOW, tags=frozenset({"fs.read"})),
    )
    declared = classify(tool, trust=Trust.LOW)
    assert (declared.risk, declared.tags) == (Risk.LOW, {"fs.read"})
    assert declared.why["risk"] == "manifest"
    overridden = classify(tool, trust=Trust.LOW, overrides=Overrides(risk=Risk.HIGH))
    assert (overridden.risk, overridden.tags) == (Risk.HIGH, {"fs.read", "unknown"})
    assert overridden.why["risk"] == "override"


def test_the_operator_decides_every_field() -> None:
    said = Overrides(
        risk=Risk.LOW,
        tags=frozenset({"network.http"}),
        effect=Effect.MONEY,
        targets=("who",),
        labels=Labels.PII,
        polls=True,
        idempotent=True,
        requires_admin_token=True,
    )
    found = classify(foreign("delete_file"), trust=Trust.LOW, overrides=said)
    assert found == Classified(
        risk=Risk.LOW,
        tags=frozenset({"network.http"}),
        sink=Sink(effect=Effect.MONEY, targets=("who",)),
        labels=Labels.PII,
        polls=True,
        idempotent=True,
        requires_admin_token=True,
        why=dict.fromkeys(found.why, "override"),
    )


def test_why_names_the_rule_of_each_field() -> None:
    found = verdict("get_item", description="Deletes files.", annotations={"openWorldHint": True})
    assert found.why == {
        "risk": "description: delete",
        "tags": "description: delete",
        "polls": "name: get",
        "effect": "tags",
        "targets": "schema",
        "labels": "openWorldHint",
        "idempotent": "risk",
        "requires_admin_token": "risk",
    }
    assert verdict("frobnicate").why["risk"] == "unknown"


def test_an_unknown_tag_in_a_statement_is_an_error_that_names_it() -> None:
    with pytest.raises(ValueError, match="fs_write"):
        Declared(tags=frozenset({"fs_write"}))


# Annotations.


@given(NAMES, TRUSTS, HINTS)
@settings(max_examples=150, deadline=None)
def test_annotations_lower_nothing_unless_trust_is_high(
    name: str, trust: Trust, hints: dict[str, bool]
) -> None:
    plain, hinted = verdict(name, trust=trust), verdict(name, trust=trust, annotations=hints)
    assert trust is Trust.HIGH or at_least(hinted, plain)


def test_a_read_only_hint_lowers_for_trust_high_only() -> None:
    hints = {"readOnlyHint": True}
    assert verdict("delete_file", trust=Trust.MEDIUM, annotations=hints).risk is Risk.CRITICAL
    trusted = verdict("delete_file", trust=Trust.HIGH, annotations=hints)
    assert (trusted.risk, trusted.tags, trusted.requires_admin_token) == (Risk.LOW, set(), False)


def test_a_destructive_hint_raises_whatever_else_is_said() -> None:
    hints = {"readOnlyHint": True, "destructiveHint": True}
    found = verdict("get_item", trust=Trust.HIGH, annotations=hints)
    assert (found.risk, effects(found)) == (Risk.HIGH, {"unknown"})


def test_a_tool_that_says_it_changes_something_is_not_a_read() -> None:
    found = verdict("get_item", annotations={"readOnlyHint": False})
    assert (found.risk, effects(found)) == (Risk.MEDIUM, {"unknown"})


def test_not_destructive_caps_the_risk_but_not_of_money_code_and_rights() -> None:
    hints = {"destructiveHint": False}
    assert verdict("update_item", trust=Trust.HIGH, annotations=hints).risk is Risk.MEDIUM
    for name, risk in (("pay", Risk.CRITICAL), ("run", Risk.HIGH), ("grant_role", Risk.HIGH)):
        assert verdict(name, trust=Trust.HIGH, annotations=hints).risk is risk


@pytest.mark.parametrize("value", ["true", 1, None, [], {"a": 1}])
def test_a_hint_that_is_no_boolean_is_not_heard(value: object) -> None:
    keys = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
    hints = dict.fromkeys(keys, value)
    assert verdict("get_item", trust=Trust.HIGH, annotations=hints) == verdict(
        "get_item", trust=Trust.HIGH
    )


def test_reads_are_idempotent_and_a_promise_of_it_needs_trust() -> None:
    hints = {"idempotentHint": True}
    assert verdict("get_item").idempotent
    assert not verdict("get_item", annotations={"idempotentHint": False}).idempotent
    assert not verdict("set_item", annotations=hints).idempotent
    assert verdict("set_item", trust=Trust.HIGH, annotations=hints).idempotent


# Descriptions.


@given(NAMES, TRUSTS, HINTS, SENTENCES, st.sampled_from([None, Risk.LOW, Risk.HIGH]))
@settings(max_examples=300, deadline=None)
def test_a_description_never_lowers(
    name: str, trust: Trust, hints: dict[str, bool], prose: str, risk: Risk | None
) -> None:
    said = Overrides(risk=risk)
    bare = foreign(name, annotations=hints)
    plain = classify(bare, trust=trust, overrides=said)
    told = classify(replace(bare, description=prose), trust=trust, overrides=said)
    assert at_least(told, plain)


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_no_text_at_all_lowers_a_delete(prose: str) -> None:
    assert at_least(verdict("delete_file", description=prose), verdict("delete_file"))


@pytest.mark.parametrize(
    ("prose", "risk", "tag"),
    [
        ("Deletes all rows of a table", Risk.CRITICAL, "database.delete"),
        ("Run any shell command after login", Risk.HIGH, "system.exec"),
        ("Finds and removes files", Risk.HIGH, "fs.delete"),
        ("This tool will permanently wipe the disk.", Risk.CRITICAL, "fs.delete"),
        ("Fetches a URL", Risk.MEDIUM, "network.http"),
        ("Search, create, update and delete issues", Risk.CRITICAL, "unknown"),
    ],
)
def test_a_description_raises_what_the_name_hides(prose: str, risk: Risk, tag: str) -> None:
    found = verdict("get_item", description=prose)
    assert found.risk is risk
    assert tag in found.tags


@pytest.mark.parametrize(
    "prose",
    [
        "Lists items created or updated recently; deleted items are skipped.",
        "Does not delete anything. Never writes.",
        "Get a file. Use delete_file to remove it.",
        "Execute a SELECT query on the SQLite database",
        "Set of helpers for time zones",
        "Forward geocoding",
    ],
)
def test_a_harmless_description_does_not_make_a_read_dangerous(prose: str) -> None:
    found = verdict("get_item", description=prose)
    assert (found.risk, effects(found)) == (Risk.LOW, set())


# Sinks and labels.


@pytest.mark.requirement("C9.2")
@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("get_item", Effect.NONE),
        ("read_file", Effect.NONE),
        ("fetch", Effect.EXTERNAL_READ),
        ("dns_lookup", Effect.EXTERNAL_READ),
        ("send_email", Effect.EXTERNAL_WRITE),
        ("http_request", Effect.EXTERNAL_WRITE),
        ("write_file", Effect.LOCAL_WRITE),
        ("insert_rows", Effect.LOCAL_WRITE),
        ("clone", Effect.EXTERNAL_WRITE),
        ("deploy", Effect.EXTERNAL_WRITE),
        ("frobnicate", Effect.EXTERNAL_WRITE),
        ("grant_access", Effect.IDENTITY),
        ("run_command", Effect.EXEC),
        ("transfer_funds", Effect.MONEY),
    ],
)
def test_the_effect_follows_from_the_tags(name: str, effect: Effect) -> None:
    assert verdict(name).sink.effect is effect


@pytest.mark.requirement("C9.2")
def test_targets_are_found_by_format_and_by_name_also_inside_objects_and_lists() -> None:
    wanted = schema(
        to={"type": "string"},
        subject={"type": "string"},
        to_date={"type": "string"},
        homepage={"type": "string", "format": "uri"},
        is_path={"type": "boolean"},
        userId={"type": ["integer", "null"]},
        message={"type": "object", "properties": {"reply": {"format": "email"}, "text": {}}},
        people={"type": "array", "items": schema(address={}, nick={})},
        filePaths={"type": "array", "items": {"type": "string"}},
        amount={"type": "number"},
        body={"anyOf": [{"$ref": "#/$defs/Link"}, {"type": "null"}]},
    ) | {"$defs": {"Link": schema(href={}, label={})}}
    found = verdict("send_email", input_schema=wanted)
    assert set(found.sink.targets) == {
        "to", "homepage", "userId", "message.reply", "people.address", "filePaths", "amount",
        "body.href",
    }  # fmt: skip


@pytest.mark.requirement("C9.1", "C9.2")
@pytest.mark.parametrize(
    ("tag", "effect", "labels"),
    [
        ("fs.read", Effect.NONE, Labels.LOCAL_FILE),
        ("database.read", Effect.NONE, Labels.NONE),
        ("cloud.key_read", Effect.NONE, Labels.SECRET),
        ("network.dns", Effect.EXTERNAL_READ, Labels.EXTERNAL_NETWORK),
        ("network.http", Effect.EXTERNAL_READ, Labels.EXTERNAL_NETWORK),
        ("network.socket", Effect.EXTERNAL_READ, Labels.EXTERNAL_NETWORK),
        ("fs.write", Effect.LOCAL_WRITE, Labels.NONE),
        ("fs.delete", Effect.LOCAL_WRITE, Labels.NONE),
        ("fs.chmod", Effect.LOCAL_WRITE, Labels.NONE),
        ("system.env", Effect.LOCAL_WRITE, Labels.NONE),
        ("database.write", Effect.LOCAL_WRITE, Labels.NONE),
        ("database.delete", Effect.LOCAL_WRITE, Labels.NONE),
        ("cloud.resource_create", Effect.EXTERNAL_WRITE, Labels.NONE),
        ("cloud.resource_delete", Effect.EXTERNAL_WRITE, Labels.NONE),
        ("unknown", Effect.EXTERNAL_WRITE, Labels.EXTERNAL_NETWORK),
        ("cloud.key_write", Effect.IDENTITY, Labels.NONE),
        ("system.exec", Effect.EXEC, Labels.NONE),
        ("payments", Effect.MONEY, Labels.NONE),
    ],
)
def test_every_tag_has_its_effect_and_its_label(tag: str, effect: Effect, labels: Labels) -> None:
    declared = Declared(risk=Risk.LOW, tags=frozenset({tag}))
    found = verdict("item", declared=declared)
    assert (found.sink.effect, found.labels) == (effect, labels)


@pytest.mark.requirement("C9.2")
@pytest.mark.parametrize(
    ("risk", "effect"), [(Risk.MEDIUM, Effect.EXTERNAL_READ), (Risk.HIGH, Effect.EXTERNAL_WRITE)]
)
def test_a_risky_look_at_the_network_may_be_more_than_a_look(risk: Risk, effect: Effect) -> None:
    declared = Declared(risk=risk, tags=frozenset({"network.http"}))
    assert verdict("item", declared=declared).sink.effect is effect


def test_a_title_raises_like_a_description() -> None:
    assert verdict("item", title="Delete all files").risk >= Risk.HIGH
    assert "description" in verdict("item", title="Delete all files").why["risk"]


def test_why_names_the_hint_that_decided() -> None:
    reads = {"readOnlyHint": True}
    lowered = verdict("send_email", trust=Trust.HIGH, annotations=reads)
    assert (lowered.why["risk"], lowered.why["effect"]) == ("readOnlyHint", "tags")
    assert lowered.sink.effect is Effect.EXTERNAL_READ
    raised = verdict("get_item", annotations={"destructiveHint": True})
    assert (raised.why["risk"], raised.why["tags"]) == ("destructiveHint", "destructiveHint")
    changing = verdict("get_item", annotations={"readOnlyHint": False})
    assert (changing.why["risk"], changing.why["tags"]) == ("readOnlyHint", "readOnlyHint")


def test_only_the_operator_may_call_something_dangerous_without_an_effect() -> None:
    silent = Declared(risk=Risk.HIGH, tags=frozenset({"fs.read"}))
    found = verdict("item", declared=silent)
    assert (found.tags, found.why["tags"]) == ({"fs.read", "unknown"}, "risk")
    overridden = classify(foreign("item"), trust=Trust.MEDIUM, overrides=silent)
    assert overridden.tags == {"fs.read"}


@pytest.mark.requirement("C9.2")
@pytest.mark.parametrize("tag", ["network.dns", "network.http", "network.socket"])
def test_what_reaches_the_network_does_so_in_a_closed_world_too(tag: str) -> None:
    declared = Declared(risk=Risk.LOW, tags=frozenset({tag}))
    closed = verdict(
        "item", trust=Trust.HIGH, declared=declared, annotations={"openWorldHint": False}
    )
    assert (closed.sink.effect, closed.labels) == (Effect.EXTERNAL_READ, Labels.NONE)


@pytest.mark.parametrize(
    ("risk", "tag", "idempotent"),
    [
        (Risk.LOW, "fs.read", True),
        (Risk.MEDIUM, "fs.read", False),
        (Risk.LOW, "fs.write", False),
    ],
)
def test_only_what_is_harmless_and_only_reads_may_be_made_again(
    *, risk: Risk, tag: str, idempotent: bool
) -> None:
    found = verdict("item", declared=Declared(risk=risk, tags=frozenset({tag})))
    assert found.idempotent is idempotent


def test_what_two_words_say_is_said_together() -> None:
    sends = Reading(risk=Risk.MEDIUM, tags=frozenset({"network.http"}), sends=True, because="send")
    deletes = Reading(risk=Risk.HIGH, tags=frozenset({"fs.delete"}), because="delete")
    both = frozenset({"network.http", "fs.delete"})
    for joined in (sends.join(deletes), deletes.join(sends)):
        assert joined == Reading(risk=Risk.HIGH, tags=both, sends=True, because="delete")
    other = Reading(risk=Risk.HIGH, because="drop")
    assert (deletes.join(other).because, other.join(deletes).because) == ("delete", "drop")
    assert Reading().join(Reading(because="get")).because == "get"


@pytest.mark.requirement("C9.2")
@pytest.mark.parametrize("kind", ["object", "array", "boolean", "null"])
def test_what_cannot_name_a_place_is_none_whatever_it_is_called(kind: str) -> None:
    assert targets_of(schema(url={"type": kind})).chosen == ()
    assert targets_of(schema(url={"type": "integer"})).places == ("url",)


@pytest.mark.requirement("C9.2")
@pytest.mark.parametrize("word", ["anyOf", "oneOf", "allOf"])
def test_targets_are_found_in_every_alternative(word: str) -> None:
    wanted = schema(body={word: [{"type": "null"}, schema(href={}, host={"type": "null"})]})
    assert targets_of(wanted).places == ("body.href",)


@pytest.mark.requirement("C9.2")
def test_a_read_chooses_only_the_place_it_reaches() -> None:
    found = verdict("get_item", input_schema=schema(id={}, page_url={}))
    assert found.sink == Sink(effect=Effect.NONE, targets=("page_url",))
    assert found.labels is Labels.EXTERNAL_NETWORK
    assert verdict("get_item", input_schema=schema(id={})).sink == Sink()


def test_a_local_write_that_takes_an_address_is_an_external_one() -> None:
    found = verdict("save_file", input_schema=schema(url={}, path={}))
    assert found.sink == Sink(effect=Effect.EXTERNAL_WRITE, targets=("url", "path"))


def test_what_is_too_deep_to_look_into_is_a_target_as_a_whole() -> None:
    deep: dict[str, Any] = schema(url={})
    for _ in range(10):
        deep = schema(a=deep)
    assert targets_of(deep).places == ("a.a.a.a.a.a",)


def test_a_schema_that_refers_to_itself_ends() -> None:
    loop = schema(child={"$ref": "#"}, url={})
    assert "child.url" in targets_of(loop).places


@pytest.mark.requirement("C9.2")
@pytest.mark.parametrize("reference", ["#/$defs/a~1~0b", "#/%24defs/a~1%7E0b"])
def test_a_reference_is_followed_however_it_is_written(reference: str) -> None:
    wanted = schema(body={"$ref": reference}) | {"$defs": {"a/~b": schema(href={})}}
    assert targets_of(wanted).places == ("body.href",)


def test_a_schema_too_large_to_read_makes_the_tool_unknown() -> None:
    branches = [{"$ref": "#"} for _ in range(50)]
    found = verdict("get_item", input_schema={"anyOf": branches})
    assert (found.risk, effects(found)) == (Risk.MEDIUM, {"unknown"})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["properties", "items", "anyOf", "$ref", "type", "format", "url"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(st.dictionaries(st.sampled_from(["properties", "anyOf", "$ref", "type"]), JSON))
@settings(max_examples=200, deadline=None)
def test_no_schema_is_too_strange_to_be_read(strange: dict[str, Any]) -> None:
    found = targets_of(strange)
    assert set(found.places) <= set(found.chosen)


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("fetch", Labels.EXTERNAL_NETWORK),
        ("list_issues", Labels.EXTERNAL_NETWORK),
        ("get_pull_request", Labels.EXTERNAL_NETWORK),
        ("frobnicate", Labels.EXTERNAL_NETWORK),
        ("read_file", Labels.LOCAL_FILE),
        ("get_secret", Labels.SECRET | Labels.EXTERNAL_NETWORK),
        ("get_item", Labels.NONE),
        ("write_file", Labels.NONE),
    ],
)
def test_results_are_labelled_by_what_the_tool_is(name: str, labels: Labels) -> None:
    assert verdict(name).labels == labels


def test_an_open_world_labels_results_and_a_closed_one_needs_trust() -> None:
    assert verdict("get_item", annotations={"openWorldHint": True}).labels.untrusted
    closed = {"openWorldHint": False}
    assert verdict("list_issues", annotations=closed).labels.untrusted
    assert not verdict("list_issues", trust=Trust.HIGH, annotations=closed).labels.untrusted


def test_what_an_untrusted_or_remote_source_says_comes_from_outside() -> None:
    assert verdict("get_item", trust=Trust.LOW).labels.untrusted
    remote = verdict("write_file", remote=True)
    assert (remote.labels.untrusted, remote.sink.effect) == (True, Effect.EXTERNAL_WRITE)
    assert verdict("get_item", remote=True).sink.effect is Effect.EXTERNAL_READ


def test_a_trusted_read_of_the_network_still_reaches_out() -> None:
    found = verdict("fetch", trust=Trust.HIGH, annotations={"readOnlyHint": True})
    assert (found.risk, found.tags) == (Risk.LOW, set())
    assert found.sink.effect is Effect.EXTERNAL_READ
    assert found.labels.untrusted


@pytest.mark.requirement("C10.2")
@pytest.mark.parametrize(
    ("name", "polls"),
    [
        ("job_status", True),
        ("wait_for_job", True),
        ("get_task_status", True),
        ("tail_log", True),
        ("update_status", False),
        ("get_item", False),
        ("statusbar_set", False),
    ],
)
def test_a_tool_that_waits_and_only_reads_is_a_poll(*, name: str, polls: bool) -> None:
    assert verdict(name).polls is polls


# The tables.


def test_the_tables_are_extended_by_whole_words_that_count_anywhere() -> None:
    rules = DEFAULT_RULES.extended(critical=["payroll", "critical_operation"], high=["frob"])
    critical = classify(foreign("get_payroll"), trust=Trust.MEDIUM, rules=rules)
    assert (critical.risk, effects(critical)) == (Risk.CRITICAL, {"unknown"})
    assert classify(foreign("frob"), trust=Trust.MEDIUM, rules=rules).risk is Risk.HIGH
    assert classify(foreign("get_frobs"), trust=Trust.MEDIUM, rules=rules).risk is Risk.HIGH
    assert classify(foreign("get_frobber"), trust=Trust.MEDIUM, rules=rules).risk is Risk.LOW
    told = foreign("get_item", description="Starts a critical operation")
    assert classify(told, trust=Trust.MEDIUM, rules=rules).risk is Risk.CRITICAL
    assert verdict("get_payroll").risk is Risk.LOW


def test_a_word_can_be_moved_down_and_tags_added() -> None:
    rules = DEFAULT_RULES.extended(low=["prune"], tags={"turbine": ["system.exec"]})
    lowered = classify(foreign("prune"), trust=Trust.MEDIUM, rules=rules)
    assert (lowered.risk, lowered.tags) == (Risk.LOW, set())
    assert classify(foreign("turbine"), trust=Trust.MEDIUM, rules=rules).tags == {"system.exec"}


@pytest.mark.parametrize("tag", ["fs_write", "cloud.key_delete", ""])
def test_an_unknown_tag_in_the_tables_is_an_error_that_names_it(tag: str) -> None:
    with pytest.raises(ValueError, match=repr(tag)):
        DEFAULT_RULES.extended(tags={"word": [tag]})


@pytest.mark.parametrize("word", ["", "_", "one two three"])
def test_what_is_no_word_cannot_be_added(word: str) -> None:
    with pytest.raises(ValueError, match="one word or two"):
        DEFAULT_RULES.extended(high=[word])


@given(st.text(max_size=40), TRUSTS)
@settings(max_examples=200, deadline=None)
def test_every_name_gets_a_whole_verdict(name: str, trust: Trust) -> None:
    found = verdict(name, trust=trust)
    assert found.tags <= TAGS
    assert found.risk < Risk.HIGH or found.tags - READ_TAGS
    assert found.requires_admin_token is (found.risk is Risk.CRITICAL)


def test_a_classified_tool_carries_the_verdict() -> None:
    source = foreign("delete_file", description="d", title="t", annotations={"x": 1})
    found = classify(source, trust=Trust.LOW)
    tool = classified_tool(source, found, trust=Trust.LOW)
    assert (tool.id, tool.kind, tool.source, tool.name) == (
        "mcp:s:delete_file", Kind.MCP, "s", "delete_file",
    )  # fmt: skip
    assert (tool.risk, tool.tags, tool.sink) == (found.risk, found.tags, found.sink)
    assert (tool.trust, tool.requires_admin_token) == (Trust.LOW, True)
    assert (tool.title, tool.description, tool.annotations) == ("t", "d", {"x": 1})


@pytest.mark.parametrize("name", ["http", "company_api", "dns"])
def test_a_tool_named_after_a_network_alone_may_send(name: str) -> None:
    assert verdict(name).sink.effect is Effect.EXTERNAL_WRITE
    assert verdict(f"get_{name}").sink.effect is not Effect.EXTERNAL_WRITE
