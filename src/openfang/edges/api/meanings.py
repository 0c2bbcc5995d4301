"""What the parameters and the keys of requests mean, for the OpenAPI document and the pages.

A name means the same wherever it stands, unless the endpoint says otherwise under its own name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

IN_PATH: Final[Mapping[str, str]] = {
    "id": "Its id, percent-encoded.",
    "key": "The key that it is kept under.",
    "name": "Its name.",
    "toolset": "The name of a toolset.",
}
IN_QUERY: Final[Mapping[str, str]] = {
    "after": "Where the page before ended: its `next`.",
    "agent": "Those of this agent.",
    "all": "Also those that are left out else.",
    "by": "What the counts are added up by.",
    "call_id": "Records of this call.",
    "caller": "Those of this caller, such as `key:ci`.",
    "context": "Those of this conversation.",
    "event": "Records of this kind.",
    "force": "Whether it goes although it is in use.",
    "format": "Lines of JSON, or Markdown.",
    "key": "Those of the key of this name.",
    "level": "Records of this level.",
    "limit": "At most so many at a time.",
    "proven": "Whether all comes along that a check without the home needs.",
    "query": "Words to find it by; the best comes first.",
    "risk": "Tools of this risk.",
    "since": "From this moment on.",
    "source": "What comes from here.",
    "space": "The space to look in, for administrators.",
    "state": "Those in this state.",
    "tag": "Tools with this side effect.",
    "task_id": "Records of this task.",
    "text": "Records in which these characters stand.",
    "tool": "Those of this tool, by its canonical id.",
}
IN_BODY: Final[Mapping[str, str]] = {
    "accept_findings": "Whether it is accepted with all that was found in it.",
    "agent": "The agent's name.",
    "agents": 'The agents that the key is bound to; `["*"]` is every one.',
    "allow_private": "Open loopback and private addresses; never metadata services.",
    "allow_tools": "The tools that may be seen; empty means all.",
    "answer": "Yes or no.",
    "archive_base64": "The archive, in base64.",
    "arguments": "The arguments, as the tool's schema asks for them.",
    "blacklist": "Side effects that are refused.",
    "budget_usd_per_day": "What agents may spend on models for this key in a day.",
    "cells_per_minute": "The rate of the key, in cells.",
    "content": "The text of the plan.",
    "content_base64": "The plan, in base64, where it is no text.",
    "context": "What the call chooses among what is bound to the key.",
    "deny_side_effect_tags": "Tools with one of these tags are refused by gate 5.",
    "description": "What the agent is told, and what the list shows.",
    "digest": "What was looked at: it is accepted only if it is still that.",
    "edges": "The edges that the key opens.",
    "env": "The child's variables: names to pass on, or a table of values.",
    "fs_read": "More paths that the sandboxed child may read.",
    "fs_write": "More paths that the sandboxed child may write.",
    "hash": "The hash that the receipt has.",
    "kind": "A key, or an admin token for gate 6.",
    "lazy": "Connect at the first call instead of at start.",
    "max_concurrency": "Calls at once; the others wait in turn.",
    "max_memory_mb": "MiB of memory that the child may take.",
    "max_processes": "Processes and threads that the child may have.",
    "memory_read": "Patterns of memory keys that may be read.",
    "memory_write": "Patterns of memory keys that may be written.",
    "message": "What is said.",
    "metadata": "What comes along with a message, as it is.",
    "mode": "The mode of calls.",
    "name": "What it is called.",
    "network": "Hosts that may be reached.",
    "origin": "Where it came from, in words.",
    "overlap": "What becomes of a run that is due while the last one goes on.",
    "parts": "More than text: files and data.",
    "preview": "Only say what would be taken in.",
    "project": "The project that it belongs to.",
    "project_id": "The project of the call.",
    "projects": "The projects that the key may name; the first is the usual one.",
    "query": "One query or several, which only read.",
    "record": "The number of the record that the receipt names last.",
    "role": "What the key may do beside its own calls.",
    "run": "The run that the call belongs to: its labels follow it.",
    "sandbox": "Whether the child runs sandboxed.",
    "schedule": "When: a moment, an interval or a rhythm, in words or as cron.",
    "scope": "How far a yes goes.",
    "session": "The name of a conversation to go on with.",
    "session_id": "Another word for `context`.",
    "shell": "Patterns of commands that may be run.",
    "singleton": "Run it once among several nodes; one node alone is one in any case.",
    "spec": "The frozen plan that calls follow, by its hash.",
    "spec_hash": "The frozen plan that the call follows.",
    "task": "The task that this answers.",
    "task_id": "The task that the call is part of.",
    "timeout_secs": "How long one request may take, in seconds.",
    "timezone": "The time zone of the schedule.",
    "tools": "Patterns of tools that may be called.",
    "toolsets": 'The toolsets that the key is bound to; `["*"]` is all that is no agent.',
    "transport": "How to reach the server: `type` and what goes with it.",
    "trust": "How far the server is trusted.",
    "ttl_secs": "After how many seconds it ends by itself.",
    "url": "The address of an agent elsewhere.",
    "value": "The secret.",
}
# What a name means at one endpoint alone.
HERE: Final[Mapping[tuple[str, str], str]] = {
    ("list_tools", "all"): "Also tools that are switched off.",
    ("list_approvals", "all"): "Questions in whichever state: another word for `state=all`.",
    ("answer_approval_with_token", "by"): "Who answers, in words, for the log.",
    ("add_server", "network"): "Whether the sandboxed child reaches the guarded egress.",
    ("search_audit", "after"): "Records after this number, or of several nodes: `a:12,b:40`.",
    ("export_audit", "after"): "Records after this number, or of several nodes: `a:12,b:40`.",
    ("search_audit", "node"): "Records of this node.",
    ("search_audit", "record"): "One record: its number, or `node:number`.",
    ("show_usage", "since"): "From this date on, or for so many days (`7d`).",
    ("list_tasks", "since"): "Changed since this moment, in seconds since 1970.",
    ("create_schedule", "message"): "What the agent is told, if it is not the description.",
    ("send_elsewhere", "context"): "The name of a conversation to go on with.",
    ("begin_task", "context"): "The name of a conversation to go on with.",
    ("send_elsewhere", "agent"): "The name of an agent elsewhere that is configured.",
}


def meaning(endpoint: str, name: str, usual: Mapping[str, str]) -> str:
    """Say what a parameter means at an endpoint."""
    return HERE.get((endpoint, name)) or usual[name]


def described(endpoint: str, body: dict[str, Any]) -> dict[str, Any]:
    """A body, or each of its forms, with what its keys mean."""
    if "anyOf" in body:
        forms = cast("list[dict[str, Any]]", body["anyOf"])
        return {**body, "anyOf": [described(endpoint, form) for form in forms]}
    keys = cast("dict[str, dict[str, Any]]", body.get("properties", {}))
    said = {
        name: {**_inside(endpoint, schema), "description": meaning(endpoint, name, IN_BODY)}
        for name, schema in keys.items()
    }
    return {**body, "properties": said} if said else body


def _inside(endpoint: str, schema: dict[str, Any]) -> dict[str, Any]:
    """What stands below a key, where all its keys are known."""
    keys = cast("dict[str, Any]", schema.get("properties", {})).keys()
    return described(endpoint, schema) if keys and keys <= IN_BODY.keys() else schema
