"""What lies within what: patterns of tools, hosts, programs and keys, and whole sets of grants."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.core.calls import Caller, Grants
from openfang.core.ids import Kind, tool_id
from openfang.core.tools import Tool
from openfang.policy.commands import command_granted, covers_command
from openfang.policy.globs import host_within, within
from openfang.policy.grants import can_see, covers, exceeding, meet, way_to_grant
from openfang.safety.urls import host_granted, parse_target

pytestmark = pytest.mark.requirement("C6.6")
GLOBS = st.text(alphabet="ab?*[!]", max_size=6)
NAMES = st.text(alphabet="ab!]", max_size=6)


@pytest.mark.parametrize(
    ("granted", "wanted"),
    [
        (("builtin:[!s]*",), "builtin:?*"),
        (("builtin:[!s]*",), "builtin:*"),
        (("", "?" * 97), "*"),
        (("?",), "*"),
        (("a?",), "a*"),
        (("*a",), "*"),
        (("a",), "?"),
        (("[ab]",), "a*"),
        (("a\x01",), "a*"),
        (("a\x02",), "a?"),
        ((), "a"),
    ],
)
def test_what_is_wider_is_not_covered(granted: tuple[str, ...], wanted: str) -> None:
    assert not covers(granted, wanted)


@pytest.mark.parametrize(
    ("granted", "wanted"),
    [
        (("*",), "[ab]*"),
        (("builtin:*",), "builtin:file_?"),
        (("builtin:file_*",), "builtin:file_read"),
        (("x", "mcp:*:read"), "mcp:fs:read"),
        (("a*c",), "a*b*c"),
        (("[ab]",), "[ab]"),
    ],
)
def test_what_is_not_wider_is_covered(granted: tuple[str, ...], wanted: str) -> None:
    assert covers(granted, wanted)


@settings(max_examples=500)
@given(glob=GLOBS, other=GLOBS, name=NAMES)
def test_what_is_within_matches_nothing_that_the_other_does_not(
    glob: str, other: str, name: str
) -> None:
    if within(glob, other) and fnmatchcase(name, glob):
        assert fnmatchcase(name, other)


@settings(max_examples=300)
@given(
    grant=st.text(alphabet="ab.*:4", min_size=1, max_size=6),
    other=st.text(alphabet="ab.*:4", min_size=1, max_size=6),
    host=st.sampled_from(["a", "b.a", "a.b", "ab"]),
    port=st.sampled_from([4, 44]),
)
def test_a_host_within_another_grant_is_granted_by_it(
    grant: str, other: str, host: str, port: int
) -> None:
    target = parse_target(f"http://{host}:{port}/")
    if host_within(grant, other) and host_granted(target, (grant,)):
        assert host_granted(target, (other,))


def test_a_port_of_a_granted_host_is_no_more_than_the_host() -> None:
    assert host_within("Example.com:443", "example.com")
    assert host_within("a.example.com:*", "*.example.com")
    assert not host_within("example.com", "example.com:443")
    assert not host_within("example.com", "ex?mple.com")
    assert host_within("ex?mple.com", "ex?mple.com")
    assert host_within("[2001:db8::1]:443", "[2001:db8::1]")
    assert host_within("[2001:db8::1]:*", "[2001:db8::*]")
    assert not host_within("2001:db8::1", "2001:db8:")
    assert not host_within("example.com:http", "example.com")


def test_the_same_tool_by_another_name_is_not_more() -> None:
    named = Grants(tools=("file_read",), shell=("git",), network=("example.com",))  # noqa: S604 - a grant
    wanted = Grants(  # noqa: S604 - a grant
        tools=("builtin:file_read",), shell=("git log *",), network=("example.com:443",)
    )
    assert exceeding(wanted, named) == []
    assert meet(wanted, named) == wanted


def test_what_is_more_is_named_one_by_one() -> None:
    granted = Grants(tools=("builtin:file_*",), shell=("git log *",))  # noqa: S604 - a grant
    wanted = Grants(  # noqa: S604 - a grant
        tools=("builtin:*",),
        shell=("git",),
        network=("*",),
        memory_read=("a",),
        memory_write=("b",),
        agents=("c",),
        agent_kill=("d",),
        agent_spawn=True,
    )
    assert exceeding(wanted, granted) == [
        "tools builtin:*",
        "network *",
        "shell git",
        "memory_read a",
        "memory_write b",
        "agent_message c",
        "agent_kill d",
        "agent_spawn",
    ]
    assert exceeding(wanted, wanted) == []


@pytest.mark.requirement("C6.1")
@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("cat notes/*.md", "cat notes/a.md /secret notes/a.md"),
        ("cat notes/*.md", "cat notes/../../secret.md"),
        ("cat notes/*.md", "cat notes/a.md notes/b.md"),
        ("cat *.md", "cat /etc/secret.md"),
        ("cat *.md", "cat --output=x.md"),
        ("tar -*", "tar -f/etc/passwd"),
        ("tool --file=*", "tool --file=/etc/passwd"),
        ("git log", "git log -p"),
        ("git log *", "git push"),
        ("git log *", "git"),
        ("* --version", "/bin/sh --version"),
        ("git", "gitk"),
        ("git", "/opt/git"),
    ],
)
def test_a_pattern_of_a_command_is_held_to_it_word_by_word(pattern: str, command: str) -> None:
    assert not command_granted((pattern,), command.split())


@pytest.mark.requirement("C6.1")
@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("cat notes/*.md", "cat notes/a.md"),
        ("cat notes/*.md", "cat notes/deep/a.md"),
        ("cat /srv/*", "cat /srv/a"),
        ("cat ../*", "cat ../a"),
        ("tar -*", "tar -x"),
        ("git", "git push --force"),
        ("git *", "git push --force /srv/a"),
        ("git log *", "git log"),
        ("* --version", "node --version"),
        ("*", "/bin/sh -c x"),
        ("'my program' *", "my-program"),
    ],
)
def test_what_a_pattern_of_a_command_means_runs(pattern: str, command: str) -> None:
    argv = ["my program"] if command == "my-program" else command.split()
    assert command_granted(("nothing", pattern), argv)


WORDS = st.sampled_from(["git", "log", "*", "a*", "-p", "-*", "/x", "/*", "..", "../*", "?"])
COMMANDS = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)
ARGV = st.lists(
    st.sampled_from(["git", "log", "a", "ab", "-p", "-x/y", "/x", "/y", "..", "../x"]),
    min_size=1,
    max_size=4,
)


@settings(max_examples=500)
@given(wanted=COMMANDS, granted=COMMANDS, argv=ARGV)
def test_a_covered_command_allows_nothing_that_the_grant_does_not(
    wanted: str, granted: str, argv: list[str]
) -> None:
    if covers_command((granted,), wanted) and command_granted((wanted,), argv):
        assert command_granted((granted,), argv)


@pytest.mark.requirement("C6.1")
def test_a_tool_is_granted_by_its_alias_too() -> None:
    tool = Tool(
        id=tool_id(Kind.BUILTIN, "shell_exec"),
        kind=Kind.BUILTIN,
        source="builtin",
        name="shell_exec",
        wire_name="shell_exec",
        aliases=("bash_exec",),
    )
    assert can_see(Caller(id="key:a", grants=Grants(tools=("bash_exec",))), tool)
    assert not can_see(Caller(id="key:a", grants=Grants(tools=("bash",))), tool)


@pytest.mark.requirement("C6.1")
def test_what_is_done_with_an_agents_tasks_is_for_who_may_call_the_agent() -> None:
    operation = Tool(
        id="agent:notes:tasks/get",
        kind=Kind.AGENT,
        source="notes",
        name="tasks/get",
        operation=True,
    )
    server = replace(operation, id="mcp:notes:prompts/get", kind=Kind.MCP)
    for granted, seen in (("agent:notes", True), ("agent:other", False)):
        assert can_see(Caller(id="key:a", grants=Grants(tools=(granted,))), operation) is seen
    assert not can_see(Caller(id="key:a", grants=Grants(tools=("agent:notes",))), server)
    assert can_see(Caller(id="key:a", grants=Grants(tools=("mcp:notes:*",))), server)


@pytest.mark.requirement("C6.1")
def test_the_way_to_a_grant_is_an_agents_manifest_or_another_key() -> None:
    agent, key = Caller(id="agent:notes"), Caller(id="key:me")
    assert way_to_grant(agent, "memory_read", "a") == (
        'memory_read = ["a"] in [capabilities]: openfang agents edit notes'
    )
    assert way_to_grant(key, "memory_read", "a") == "openfang keys create NAME --memory-read 'a'"
