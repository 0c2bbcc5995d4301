"""How a change of a file is shown: exactly, and without any secret."""

from __future__ import annotations

import json

import pytest

from openfang.app.connect.difference import difference

pytestmark = pytest.mark.requirement("C4.9", "C18.3")

SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345"


def test_it_is_a_unified_diff() -> None:
    assert difference(b"a\r\nb\r\n", b"a\r\nc\r\n", "/x") == [
        *("--- /x", "+++ /x", "@@ -1,2 +1,2 @@", " a", "-b", "+c")
    ]
    assert difference(None, b"a\n", "/x")[:2] == ["--- /dev/null", "+++ /x"]
    assert difference(b"a", None, "/x") == ["--- /x", "+++ /dev/null", "@@ -1 +0,0 @@", "-a"]
    assert difference(b"a", b"a", "/x") == []


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (f'"env": {{"GITHUB_TOKEN": "{SECRET}"}}', '"env": {"GITHUB_TOKEN": "***"}'),
        ('{"A": "plain", "DB_PASSWORD": "x"}', '{"A": "plain", "DB_PASSWORD": "***"}'),
        ('"Authorization": "Bearer of_1"', '"Authorization": "Bearer ***"'),
        ("http_headers = { Authorization = 'Bearer x' }", None),
        ('"args": ["-y", "--token", "abc", "x"]', '"args": ["-y", "--token", "***", "x"]'),
        ('"url": "https://me:pw@x.example/mcp"', '"url": "***"'),
        (f"""// it's "odd: {SECRET}""", None),
        ('"command": "/opt/bin/openfang", "args": ["mcp"]', "same"),
    ],
)
def test_no_secret_of_any_line_is_shown(line: str, shown: str | None) -> None:
    found = difference(line.encode(), f"{line}\n+".encode(), "/x")
    assert SECRET not in "\n".join(found)
    if shown is None:
        assert "***" in found[3] or "[redacted:" in found[3]
    else:
        assert found[3] == f" {line if shown == 'same' else shown}"


def test_of_a_line_too_long_to_be_read_the_change_is_shown() -> None:
    before = json.dumps({f"k{n}": {"A_TOKEN": SECRET, "n": n} for n in range(500)}).encode()
    after = before[:-1] + b', "openfang": {"command": "openfang"}}'
    *_, old, new = difference(before, after, "/x")
    assert old[:5] == "-... "
    assert new[:5] == "+... "
    assert '"openfang": {"command": "openfang"}}' in new
    assert len(new) < 300
    assert "ghp_" not in old + new
