from __future__ import annotations

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.app.servers.pinning import may_change

pytestmark = pytest.mark.requirement("C11.4")


@pytest.mark.parametrize(
    "command",
    [
        "npx -y foo",
        "npx -y foo@1",
        "npx foo@1.2",
        "npx foo@1.x",
        "npx foo@^1.2.3",
        "npx foo@latest",
        "npx foo@npm:evil@1.0.0",
        "npx",
        "npx --package=evil good@1.0.0",
        "npx --package evil good@1.0.0",
        "npx -p=evil good@1.0.0",
        "npx -p a@1.0.0 -p evil x",
        "npx -yp evil good@1.0.0",
        "npx -c 'evil' good@1.0.0",
        "npx -- foo",
        "npx github:owner/foo",
        "/usr/bin/npx foo",
        "npx.cmd foo",
        "npm exec foo",
        "npm --yes exec foo",
        "npm x -- foo",
        "npm exec good@1.0.0 --package=evil",
        "npm exec good@1.0.0 --pack evil",
        "npm --package=evil exec good@1.0.0",
        "pnpm dlx foo",
        "pnpm --silent dlx foo",
        "yarn dlx foo",
        "bun x foo",
        "bunx foo@2",
        "uvx foo",
        "uvx foo==1.*",
        "uvx foo>=1.0",
        "uvx foo@latest",
        "uvx --from=evil good==1.0",
        "uvx --from evil good==1.0",
        "uvx --with evil==1.0 good",
        "uvx --with evil good==1.0",
        "uvx -w evil good==1.0",
        "uvx --with a==1.0,evil good==1.0",
        "uvx --with-requirements evil.txt good==1.0",
        "uvx --from git+https://git.example/evil good",
        "uv tool run foo",
        "uv --quiet tool run foo",
        "uv tool --quiet run foo",
        "uv run --with evil server.py",
        "pipx run foo",
        "pipx run --spec evil foo==1.0",
        "python3 -m pipx run foo",
        "env npx foo",
        "env -i A=1 npx -y foo",
        "env bash -c 'npx foo'",
        "timeout 10 npx foo",
        "bash -c 'npx foo'",
        "sh -lc 'A=1 npx foo'",
        "bash -c 'cd /srv && npx foo@1.0.0'",
        "bash -c 'cd /srv; bash -c \"npx foo\"'",
        "bash -c 'exec npx foo'",
        "cmd /c npx foo",
    ],
)
def test_what_may_change_under_our_feet_is_found(command: str) -> None:
    assert may_change(shlex.split(command))


@pytest.mark.parametrize(
    "command",
    [
        "npx -y foo@1.2.3",
        "npx @scope/foo@1.2.3-beta.1 /srv --package=x",
        "npx --package=a@1.0.0 -p @b/c@2.0.0 run-it",
        "npm exec --yes -- foo@1.2.3 --package=x",
        "npm exec foo@1.2.3 --port 80",
        "pnpm dlx foo@1.2.3",
        "uvx foo==1.2.3 --with x",
        "uvx foo@1.2.3",
        "uvx --python 3.12 foo[cli]==1.2.3",
        "uvx --from foo==1.2.3 run-it",
        "uvx --with a==1.0,b==2.0 foo==1.2.3",
        "uv tool run foo==1.2.3",
        "uv --directory /srv/it run server.py",
        "uv run --with mcp==1.2.3 server.py",
        "pipx run --spec foo==1.0 foo",
        "env A=1 npx foo@1.2.3",
        "bash -c 'npx -y foo@1.2.3'",
        "bash start.sh",
        "npm run x",
        "npm start",
        "uv pip list",
        "node server.js npx",
        "python3 -m my_server",
        "/srv/bin/server",
    ],
)
def test_what_is_bound_to_a_version_or_fetches_nothing_does_not_change(command: str) -> None:
    assert not may_change(shlex.split(command))


@settings(max_examples=200)
@given(
    st.sampled_from(["npx", "npm exec", "uvx", "uv tool run", "pipx run"]),
    st.lists(st.text(max_size=12), max_size=6),
)
def test_any_command_line_is_read_to_its_end(runner: str, words: list[str]) -> None:
    assert may_change([*runner.split(), *words]) in {True, False}
