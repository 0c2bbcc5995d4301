"""Wrong files, one mistake each: the message names file, line, key and what was expected."""

# ruff: noqa: E501 - one case a line, so that the table reads as one
from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from openfang.config.documents import MAX_BYTES
from openfang.config.load import check

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C2.6")

STDIO = 'transport = { type = "stdio", command = "npx" }'


class Mistake(NamedTuple):
    text: str
    line: int
    key: str
    message: str


MISTAKES = {
    "unknown root key": Mistake("log_levle = 1", 1, "log_levle", "unknown key; did you mean log_level?"),
    "unknown section": Mistake(
        "[limit]\n", 1, "limit", "unknown key; did you mean limits?"
    ),
    "unknown key far from all": Mistake(
        "[secrets]\nzzz = 1", 2, "secrets.zzz", "unknown key; expected one of keyring"
    ),
    "negative timeout": Mistake(
        f'[[mcp_servers]]\nname = "github"\n{STDIO}\ntimeout_secs = -1',
        4,
        "mcp_servers.github.timeout_secs",
        "expected a number greater than 0, got -1",
    ),
    "timeout of the second server": Mistake(
        f'[[mcp_servers]]\nname = "a"\n{STDIO}\n\n[[mcp_servers]]\nname = "b"\n{STDIO}\ntimeout_secs = "30"',
        8,
        "mcp_servers.b.timeout_secs",
        'expected a number, got "30"',
    ),
    "server without a transport": Mistake(
        '# servers\n[[mcp_servers]]\nname = "a"', 2, "mcp_servers.a.transport", "expected a table, got nothing"
    ),
    "server without a name": Mistake(
        f"[[mcp_servers]]\n{STDIO}", 1, "mcp_servers[0].name", "expected a string, got nothing"
    ),
    "server name with a colon": Mistake(
        f'[[mcp_servers]]\nname = "a:b"\n{STDIO}',
        2,
        'mcp_servers."a:b".name',
        'expected a name of letters, digits, - and _, got "a:b"',
    ),
    "unknown transport": Mistake(
        '[[mcp_servers]]\nname = "a"\n[mcp_servers.transport]\ntype = "smtp"',
        4,
        "mcp_servers.a.transport.type",
        'expected "stdio", "sse" or "http", got "smtp"',
    ),
    "transport without a type": Mistake(
        '[[mcp_servers]]\nname = "a"\n[mcp_servers.transport]\ncommand = "npx"',
        3,
        "mcp_servers.a.transport.type",
        'expected "stdio", "sse" or "http", got nothing',
    ),
    "key of another transport": Mistake(
        '[[mcp_servers]]\nname = "a"\n[mcp_servers.transport]\ntype = "stdio"\ncommand = "x"\nurl = "y"',
        6,
        "mcp_servers.a.transport.url",
        "unknown key; expected one of type, command, args",
    ),
    "command as a list": Mistake(
        '[[mcp_servers]]\nname = "a"\n[mcp_servers.transport]\ntype = "stdio"\ncommand = ["npx"]',
        5,
        "mcp_servers.a.transport.command",
        "expected a string, got a list",
    ),
    "address of another scheme": Mistake(
        '[[mcp_servers]]\nname = "a"\n[mcp_servers.transport]\ntype = "sse"\nurl = "ftp://u:pw@x.org"',
        5,
        "mcp_servers.a.transport.url",
        'expected an http:// or https:// address, got "ftp://***@x.org"',
    ),
    "unknown tag": Mistake(
        f'[[mcp_servers]]\nname = "a"\n{STDIO}\ndeny_side_effect_tags = [\n  "payments",\n  "fs.wirte",\n]',
        6,
        "mcp_servers.a.deny_side_effect_tags[1]",
        "; did you mean fs.write?",
    ),
    "unknown trust": Mistake(
        f'[[mcp_servers]]\nname = "a"\n{STDIO}\ntrust = "full"',
        4,
        "mcp_servers.a.trust",
        'expected "low", "medium" or "high", got "full"',
    ),
    "unknown risk of a tool": Mistake(
        f'[[mcp_servers]]\nname = "a"\n{STDIO}\n[mcp_servers.tools."my tool"]\nrisk = 4',
        5,
        'mcp_servers.a.tools."my tool".risk',
        'expected "LOW", "MEDIUM", "MED", "HIGH" or "CRITICAL", got 4',
    ),
    "variable that is no name": Mistake(
        f'[[mcp_servers]]\nname = "a"\n{STDIO}\nenv = ["A=1"]',
        4,
        "mcp_servers.a.env[0]",
        'expected the name of a variable, got "A=1"',
    ),
    "value of a variable, which is not shown": Mistake(
        f'[[mcp_servers]]\nname = "a"\n{STDIO}\n[mcp_servers.env]\nPIN = 1234',
        5,
        "mcp_servers.a.env.PIN",
        "expected a string, got something else",
    ),
    "api key that is no string": Mistake("api_key = 1234", 1, "api_key", "expected a string, got something else"),
    "relative path to read": Mistake(
        f'[[mcp_servers]]\nname = "a"\n{STDIO}\nfs_read = ["data"]',
        4,
        "mcp_servers.a.fs_read[0]",
        'expected an absolute path, or one that starts with ~/, got "data"',
    ),
    "table where a list belongs": Mistake(
        '[mcp_servers]\nname = "a"', 1, "mcp_servers", "expected a list, got a table"
    ),
    "a bool is no number": Mistake("[limits]\nburst = true", 2, "limits.burst", "expected a whole number, got true"),
    "a float is no whole number": Mistake("[a2a]\nmax_tasks = 1.0", 2, "a2a.max_tasks", "expected a whole number, got 1.0"),
    "a path that is taken": Mistake('[a2a]\nlisten_path = "/api/a2a"', 2, "a2a.listen_path", 'expected a path that nothing else is served at, got "/api/a2a"'),
    "not a number": Mistake("[tools]\ntimeout_secs = nan", 2, "tools.timeout_secs", "expected a number that is finite, got nan"),
    "without end": Mistake("[guard]\ndeadline_secs = inf", 2, "guard.deadline_secs", "expected a number that is finite, got inf"),
    "too much": Mistake("[guard]\nmax_depth = 65", 2, "guard.max_depth", "expected a whole number of at most 64, got 65"),
    "a date is no string": Mistake("log_level = 1979-05-27", 1, "log_level", 'expected "debug", "info", "warning" or "error", got 1979-05-27'),
    "dotted key": Mistake('limits.costs.call = "5"', 1, "limits.costs.call", 'expected a whole number, got "5"'),
    "inline table": Mistake("[limits]\ncosts = { call = 5, helth = 1 }", 2, "limits.costs.helth", "unknown key; did you mean health?"),
    "after a long string": Mistake('public_url = """\nhttps://x.org"""\nlog_level = 3', 3, "log_level", "got 3"),
    "a port that does not exist": Mistake('api_listen = "x:70000"', 1, "api_listen", 'expected a port of at most 65535, got "x:70000"'),
    "a plugin of another kind": Mistake('[plugins]\ngates = ["wasm:x.py:A"]', 2, "plugins.gates[0]", 'expected python:file.py:Class, got "wasm:x.py:A"'),
    "a short secret, which is not shown": Mistake('[approvals.webhook]\nurl = "http://x"\nsecret = "abc"', 3, "approvals.webhook.secret", "expected a string of at least 16 characters, got a string"),
    "an issuer without its audience": Mistake('[auth.issuer]\nurl = "http://x"', 1, "auth.issuer.audience", "expected a string or a list, got nothing"),
    "an issuer whose keys anybody could change": Mistake('[auth.issuer]\nurl = "http://x"\naudience = "y"', 1, "auth.issuer", "expected https:// addresses, or allow_private = true"),
    "an audience that is none": Mistake('[auth.issuer]\nurl = "https://x"\naudience = ["a", ""]', 3, "auth.issuer.audience[1]", "expected a string of at least 1 characters"),
    "a scope of two words": Mistake('[auth.issuer]\nurl = "https://x"\naudience = "y"\ngrants = { "a b" = ["*"] }', 4, 'auth.issuer.grants."a b"', "expected a name that matches"),
    "a node's key": Mistake('[[nodes]]\nname = "a"\nurl = "http://x"\npublic_key = "abc"', 4, "nodes.a.public_key", 'expected 32 bytes in base 64, got "abc"'),
    "a toolset's name": Mistake("[toolsets.Big]", 1, "toolsets.Big", 'expected a name that matches ^[a-z0-9][a-z0-9_-]*$, got "Big"'),
    "a toolset's taken name": Mistake("[toolsets.agents]", 1, "toolsets.agents", 'expected another name: /mcp/agents is taken, got "agents"'),
    "a wire name": Mistake('[toolsets.a]\nrename = { "builtin:x" = "x y" }', 2, 'toolsets.a.rename."builtin:x"', 'expected a name of at most 64 letters, digits, - and _, got "x y"'),
    "a toolset's unknown server": Mistake(f'[[mcp_servers]]\nname = "files"\n{STDIO}\n[toolsets.a]\nservers = ["files", "fils"]', 5, "toolsets.a.servers[1]", 'expected the name of an entry of mcp_servers, got "fils"'),
    "a word of two": Mistake('[classify]\nhigh = ["drop it"]', 2, "classify.high[0]", 'expected a word in lower case, got "drop it"'),
    "a word's unknown tag": Mistake('[classify.tags]\nwipe = ["fs.wipe"]', 2, "classify.tags.wipe[0]", 'got "fs.wipe"'),
    "a program with a path": Mistake('[tools.shell_exec]\nprograms = ["/bin/sh"]', 2, "tools.shell_exec.programs[0]", 'expected the name of a program, without a path, got "/bin/sh"'),
    "an empty api key": Mistake('api_key = ""', 1, "api_key", "expected a string of at least 1 characters, got a string"),
    "an argument that cannot be one": Mistake('[[mcp_servers]]\nname = "a"\n[mcp_servers.transport]\ntype = "stdio"\ncommand = "x"\nargs = ["a\\u0000b"]', 6, "mcp_servers.a.transport.args[0]", "expected a string without null characters"),
    "a program that climbs": Mistake('[[mcp_servers]]\nname = "a"\n[mcp_servers.transport]\ntype = "stdio"\ncommand = "../x"', 5, "mcp_servers.a.transport.command", "expected a path without `..`"),
    "an argument that climbs": Mistake('[[mcp_servers]]\nname = "a"\n[mcp_servers.transport]\ntype = "stdio"\ncommand = "x"\nargs = ["-y",\n  "--root=/a/../b"]', 7, "mcp_servers.a.transport.args[1]", "expected a path without `..`"),
    "a header of two lines": Mistake('[[mcp_servers]]\nname = "a"\n[mcp_servers.transport]\ntype = "http"\nurl = "http://x"\nheaders = { A = "b\\r\\nC: d" }', 6, "mcp_servers.a.transport.headers.A", "expected a string of one line, got a string"),
    "an include that no file system holds": Mistake(f'include = ["{"x" * 300}.toml"]', 1, "include[0]", "expected an existing .toml or .yaml file"),
    "two servers of one name": Mistake(
        f'[[mcp_servers]]\nname = "a"\n{STDIO}\n[[mcp_servers]]\nname = "a"\n{STDIO}',
        4,
        "mcp_servers.a",
        "expected one entry of this name, got another in config.toml:1",
    ),
    "two peers of one name": Mistake(
        '[[a2a.external_agents]]\nname = "p"\nurl = "http://x"\n[[a2a.external_agents]]\nname = "p"\nurl = "http://y"',
        4,
        "a2a.external_agents.p",
        "expected one entry of this name, got another in config.toml:1",
    ),
    "an include that is no list": Mistake('include = "more.toml"', 1, "include", 'expected a list, got "more.toml"'),
    "an include of another kind": Mistake('include = [\n"notes.txt"]', 2, "include[0]", "expected an existing .toml or .yaml file"),
}  # fmt: skip


@pytest.fixture
def folder(home: Path) -> Path:
    home.mkdir()
    return home


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named_with_file_line_and_key(folder: Path, mistake: Mistake) -> None:
    (folder / "config.toml").write_text(mistake.text, "utf-8")
    (problem,) = check(folder, {})
    assert (problem.place.file, problem.place.line, problem.key) == (
        "config.toml",
        mistake.line,
        mistake.key,
    )
    assert mistake.message in problem.message
    assert str(problem) == f"config.toml:{mistake.line}: {mistake.key}: {problem.message}"


SYNTAX = {
    "no value": ("a = 1\nb =\n", "config.toml:2:4: not valid TOML: Invalid value"),
    "a key twice": ("a = 1\na = 2\n", "config.toml:2:6: not valid TOML: Cannot overwrite a value"),
    "an open string": ('a = """x\n', "config.toml:2: not valid TOML: Unterminated string at the end of the file"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), SYNTAX.values(), ids=SYNTAX)
def test_what_is_not_toml_is_named_with_line_and_column(
    folder: Path, text: str, message: str
) -> None:
    (folder / "config.toml").write_text(text, "utf-8")
    assert [str(problem) for problem in check(folder, {})] == [message]


def test_other_bytes_than_utf_8_are_named_with_their_line(folder: Path) -> None:
    (folder / "config.toml").write_bytes(b'log_level = "info"\n# \xff\n')
    assert [str(problem) for problem in check(folder, {})] == [
        "config.toml:2: expected UTF-8 text, got other bytes"
    ]


def test_a_file_without_end_is_not_read_to_its_end(folder: Path) -> None:
    (folder / "config.toml").write_bytes(b"#" * (MAX_BYTES + 1))
    (problem,) = check(folder, {})
    assert str(problem) == f"config.toml: cannot be read: it has more than {MAX_BYTES} bytes"


def test_endless_nesting_is_a_mistake_and_not_a_crash(folder: Path) -> None:
    (folder / "config.toml").write_text("a = " + "[" * 5000, "utf-8")
    (problem,) = check(folder, {})
    assert (problem.place.file, problem.message) == (
        "config.toml",
        "expected less than a hundred levels of nesting",
    )


CONFLICTS = {
    "a server": (
        f'[[mcp_servers]]\nname = "a"\n{STDIO}\n',
        f'\n[[mcp_servers]]\nname = "a"\nlazy = true\n{STDIO}\n',
        "more.toml:2: mcp_servers.a: expected one entry of this name, got another in config.toml:2",
    ),
    "a value": (
        "[limits]\nburst = 1\n",
        "[limits]\nburst = 2\n",
        "more.toml:2: limits.burst: expected 1 as in config.toml:3, got 2",
    ),
    "a secret, which is not shown": (
        'api_key = "one"\n',
        'api_key = "two"\n',
        "more.toml:1: api_key: expected a string as in config.toml:2, got a string",
    ),
    "an include of an include": (
        "",
        "include = []\n",
        "more.toml:1: include: expected in config.toml only: an included file includes no other",
    ),
}


@pytest.mark.parametrize(("one", "other", "message"), CONFLICTS.values(), ids=CONFLICTS)
def test_two_files_that_disagree_are_both_named(
    folder: Path, one: str, other: str, message: str
) -> None:
    (folder / "config.toml").write_text(f'include = ["more.toml"]\n{one}', "utf-8")
    (folder / "more.toml").write_text(other, "utf-8")
    assert [str(problem) for problem in check(folder, {})] == [message]
