from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.config.edit import (
    switched,
    with_server,
    with_table,
    without_server,
    without_table,
)
from openfang.core.errors import ConfigError

pytestmark = pytest.mark.requirement("C2.1", "C2.8")

TEXT = '''\
# At the top.
api_listen = "127.0.0.1:1"  # here

# About a.
[[mcp_servers]]
  name = "a"  # the first
[mcp_servers.transport]  # its own
type = "stdio"
command = """
# no comment
x"""

[policy]  # between
profile = "seed"

# About b.
[[mcp_servers]]
name = 'b'
"enabled" = false # off for now
transport = { type = "stdio", command = "y" }

[mcp_servers.tools.one]
risk = "LOW"

# The end.
'''


def test_an_entry_is_switched_and_nothing_else_changes() -> None:
    on = switched(TEXT, "b", enabled=True)
    assert on == TEXT.replace('"enabled" = false', '"enabled" = true')
    off = switched(TEXT, "a", enabled=False)
    assert off == TEXT.replace("# the first\n", "# the first\n  enabled = false\n")
    assert switched(on, "b", enabled=False) == TEXT


def test_an_entry_goes_with_its_tables_and_the_comment_above_it() -> None:
    without_a = without_server(TEXT, "a")
    assert "About a" not in without_a
    assert "its own" not in without_a
    assert [one["name"] for one in tomllib.loads(without_a)["mcp_servers"]] == ["b"]
    assert "# At the top." in without_a
    assert "[policy]  # between" in without_a
    without_b = without_server(TEXT, "b")
    assert [one["name"] for one in tomllib.loads(without_b)["mcp_servers"]] == ["a"]
    assert "mcp_servers" not in tomllib.loads(without_server(without_b, "a"))


def test_tables_of_an_entry_are_found_wherever_they_stand() -> None:
    text = '[[mcp_servers]]\nname = "a"\n[policy]\n[mcp_servers.transport]\ntype = "stdio"\n'
    assert tomllib.loads(without_server(text, "a")) == {"policy": {}}


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = [{ name = "a" }]',
        'mcp_servers = [\n  { name = "a" },\n]',
    ],
)
def test_what_is_written_in_another_way_is_left_to_an_editor(text: str) -> None:
    for change in (
        lambda: with_server(text, {"name": "b"}),
        lambda: without_server(text, "a"),
    ):
        with pytest.raises(ConfigError, match="by hand"):
            change()
    with pytest.raises(ConfigError):
        without_server(text, "nobody")


def test_a_file_that_is_broken_already_is_left_alone() -> None:
    for change in (
        lambda: with_server("a = ", {"name": "b"}),
        lambda: switched("[[mcp_servers", "a", enabled=True),
    ):
        with pytest.raises(ConfigError, match="not valid TOML"):
            change()


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
KEYS = st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]{0,8}\Z")
ENTRIES: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "name": st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9_-]{0,8}\Z"),
        "enabled": st.sampled_from([False]),
        "transport": st.fixed_dictionaries(
            {"type": st.just("stdio"), "command": WORDS, "args": st.lists(WORDS, max_size=3)}
        ),
    },
    optional={
        "timeout_secs": st.floats(0.1, 1e6),
        "env": st.one_of(st.lists(KEYS, max_size=3), st.dictionaries(KEYS, WORDS, min_size=1)),
    },
)


@given(st.lists(ENTRIES, min_size=1, max_size=3, unique_by=lambda one: one["name"]))
@settings(max_examples=60)
def test_what_is_added_is_read_back_switched_and_taken_out(entries: list[dict[str, Any]]) -> None:
    text = TEXT
    for entry in entries:
        if entry["name"] not in {"a", "b"}:
            added = with_server(text, entry)
            assert added.startswith(text)
            assert tomllib.loads(added)["mcp_servers"][-1] == entry
            on = switched(added, entry["name"], enabled=True)
            assert tomllib.loads(on)["mcp_servers"][-1] == {**entry, "enabled": True}
            gone = without_server(added, entry["name"])
            assert tomllib.loads(gone) == tomllib.loads(text)
            text = added


OTHERS = """\
# At the top.
model = "x"

# About docs.
[mcp_servers.docs]
url = "https://docs.example/mcp"

# About ours.
[mcp_servers.openfang]  # in force
command = "old"
# inside

[mcp_servers.openfang.env]
A = "1"


[profiles.fast]
text = QQQ
[mcp_servers.openfang]
QQQ
""".replace("QQQ", '"' * 3)
PATH = ("mcp_servers", "openfang")
NEW: dict[str, Any] = {"command": "of", "args": ["mcp"], "env": {"OPENFANG_HOME": "/x y"}}


@pytest.mark.requirement("C4.9")
def test_a_table_is_written_in_the_place_of_the_old_one() -> None:
    new = (
        '[mcp_servers.openfang]\ncommand = "of"\nargs = ["mcp"]\nenv = { OPENFANG_HOME = "/x y" }\n'
    )
    start, end = OTHERS.index("[mcp_servers.openfang]"), OTHERS.index("[profiles.fast]")
    # The blank line between the two old tables now parts the new one from the next.
    assert with_table(OTHERS, PATH, NEW) == f"{OTHERS[:start]}{new}\n{OTHERS[end:]}"
    without = without_table(OTHERS, PATH)
    assert without == OTHERS[: OTHERS.index("# About ours.")] + OTHERS[end:]
    assert with_table(without, PATH, NEW) == f"{without}\n{new}"


@pytest.mark.requirement("C4.9")
@pytest.mark.parametrize("text", ["", "a = 1", "a = 1\n", "a = 1\r\n", "[mcp_servers.b]\nc = 1\n"])
def test_a_table_comes_at_the_end_and_goes_again(text: str) -> None:
    added = with_table(text, PATH, NEW)
    expected = tomllib.loads(text)
    others = expected.get("mcp_servers", {})
    assert tomllib.loads(added) == {**expected, "mcp_servers": {**others, "openfang": NEW}}
    assert ("\r\n" in added) == ("\r\n" in text)
    assert without_table(added, PATH).rstrip() == text.rstrip()


@pytest.mark.requirement("C4.9")
@pytest.mark.parametrize(
    "text",
    [
        "mcp_servers = 1",
        'mcp_servers = { openfang = { command = "old" } }',
        'mcp_servers.openfang = { command = "old" }',
        '[mcp_servers]\nopenfang = { command = "old" }',
        '[[mcp_servers]]\nname = "ours"',
    ],
)
def test_a_table_that_is_written_in_another_way_is_left_to_an_editor(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        with_table(text, PATH, NEW)
    assert "[mcp_servers.openfang]" in refused.value.way_out
