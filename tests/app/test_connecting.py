"""Our entry in the files of other programs: written, kept apart from theirs, and taken back."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from dataclasses import dataclass
from difflib import ndiff
from typing import TYPE_CHECKING, Any

import pytest

from openfang.app.connect.connecting import (
    Planned,
    Seen,
    Target,
    carry_out,
    find_target,
    join,
    own_command,
    own_variables,
    part,
    see,
    survey,
)
from openfang.app.connect.connections import Connections, require_writable
from openfang.app.connect.importing import leads_to_us, plan
from openfang.config.clients import named_file, read_client, usual_files, written_file
from openfang.config.forms import FORMS, find_form
from openfang.core.errors import ConfigError, Conflict, NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.requirement("C4.9")

OWN = frozenset({"127.0.0.1:50051"})
COMMAND = ["/opt/bin/openfang", "mcp"]
URL = "http://127.0.0.1:50051/mcp"
WORDS = [form.word for form in FORMS]
JSON_WORDS = [word for word in WORDS if word != "codex"]
STARTED = {"command": "/opt/bin/openfang", "args": ["mcp"]}
SIGNED = {"Authorization": "Bearer of_1"}
# Each program's own words, as its documentation has them.
WRITTEN: dict[str, tuple[str, str, dict[str, Any], dict[str, Any] | None]] = {
    "cursor": (".cursor/mcp.json", "mcpServers", STARTED, {"url": URL, "headers": SIGNED}),
    "vscode": (
        ".config/Code/User/mcp.json",
        "servers",
        {"type": "stdio", **STARTED},
        {"type": "http", "url": URL, "headers": SIGNED},
    ),
    "claude-desktop": (
        ".config/Claude/claude_desktop_config.json",
        "mcpServers",
        STARTED,
        None,
    ),
    "claude-code": (
        ".claude.json",
        "mcpServers",
        {"type": "stdio", **STARTED},
        {"type": "http", "url": URL, "headers": SIGNED},
    ),
    "windsurf": (
        ".codeium/windsurf/mcp_config.json",
        "mcpServers",
        STARTED,
        {"serverUrl": URL, "headers": SIGNED},
    ),
    "codex": (
        ".codex/config.toml",
        "mcp_servers",
        STARTED,
        {"url": URL, "http_headers": SIGNED},
    ),
    "gemini": (
        ".gemini/settings.json",
        "mcpServers",
        STARTED,
        {"httpUrl": URL, "headers": SIGNED},
    ),
    "zed": (
        ".config/zed/settings.json",
        "context_servers",
        STARTED,
        {"url": URL, "headers": SIGNED},
    ),
}
ODD = """\
{
    // mine, with "quotes and {braces
    "theme" : "dark",   "TABLE": {
        "github": {"command": "npx", "args": ["-y", "gh"] /* pinned? */ }, // keep
    },
  "last": [1,2,
     3],
}
"""
ODD_TOML = """\
model = "x"  # mine

# about docs
[mcp_servers.docs]
url = 'https://docs.example/mcp'

[profiles.fast]
text = \"\"\"
[mcp_servers.openfang]
\"\"\"
"""
on_linux = pytest.mark.skipif(sys.platform == "darwin", reason="the places are those of Linux")


@dataclass(frozen=True, slots=True)
class Desk:
    """A user's home with our home in it."""

    user: Path

    @property
    def environ(self) -> dict[str, str]:
        return {"HOME": str(self.user)}

    @property
    def connections(self) -> Connections:
        return Connections(self.user / ".openfang")

    @property
    def copies(self) -> list[bytes]:
        return sorted(file.read_bytes() for file in self.connections.folder.glob("*.bak"))

    def target(self, word: str, name: str = "openfang") -> Target:
        return find_target(find_form(word), self.environ, self.user, name=name)

    def seen(self, word: str, name: str = "openfang") -> Seen:
        return see(self.target(word, name), self.connections, OWN, self.environ)

    def join(self, word: str, *, http: bool = False, name: str = "openfang") -> Planned:
        form = find_form(word)
        entry = form.address(URL, "of_1") if http else form.command(COMMAND, {})
        planned = join(self.seen(word, name), entry)
        carry_out(planned, self.connections, "key_1" if http else "")
        return planned

    def part(self, word: str, name: str = "openfang") -> Planned:
        planned = part(self.seen(word, name), self.connections)
        carry_out(planned, self.connections)
        return planned

    def write(self, word: str, text: str) -> Path:
        file = self.target(word).file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
        return file

    def odd(self, word: str) -> str:
        text = ODD.replace("TABLE", find_form(word).table)
        return ODD_TOML if word == "codex" else text


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / ".openfang").mkdir(mode=0o700)
    return Desk(tmp_path)


def read(file: Path) -> dict[str, Any]:
    text = file.read_text()
    return tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)


@on_linux
@pytest.mark.parametrize("word", WORDS)
def test_every_program_finds_the_entry_where_and_as_it_reads_it(desk: Desk, word: str) -> None:
    place, table, started, reached = WRITTEN[word]
    desk.join(word)
    assert read(desk.user / place) == {table: {"openfang": started}}
    if reached is not None:
        desk.join(word, http=True)
        assert read(desk.user / place) == {table: {"openfang": reached}}
    assert (find_form(word).url == "") == (reached is None)


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("http", [False, True])
def test_an_import_knows_what_was_written_here(desk: Desk, word: str, *, http: bool) -> None:
    desk.join(word, http=http and bool(find_form(word).url))
    (file,) = usual_files(desk.environ, desk.user / "elsewhere")
    assert file.client == find_form(word).client
    assert named_file(file.path).client == find_form(word).client
    (foreign,) = read_client(file, desk.environ)
    assert leads_to_us(foreign, OWN)
    (planned,) = plan([foreign], [], OWN)
    assert planned.skipped == "it starts openfang itself"


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("layout", ["plain", "mark", "windows", "no last line break"])
def test_all_else_stays_and_undo_is_exact(desk: Desk, word: str, layout: str) -> None:
    text = desk.odd(word)
    match layout:
        case "mark":
            text = "\ufeff" + text
        case "windows":
            text = text.replace("\n", "\r\n")
        case "no last line break":
            text = text.rstrip("\n")
        case _:
            pass
    file = desk.write(word, text)
    file.chmod(0o640)
    desk.join(word)
    after = file.read_bytes().decode()
    changed = [line for line in ndiff(text.splitlines(), after.splitlines()) if line[0] != " "]
    assert {line[0] for line in changed} == {"+"}
    assert "openfang" in "".join(changed)
    assert "\r" not in after.replace("\r\n", "\n")
    assert ("\r\n" in after) == (layout == "windows")
    assert file.stat().st_mode & 0o777 == 0o640
    assert desk.part(word).note == ""
    assert file.read_bytes() == text.encode()
    assert file.stat().st_mode & 0o777 == 0o640
    assert desk.copies == [text.encode()]


@pytest.mark.parametrize("word", WORDS)
def test_if_others_wrote_since_undo_takes_out_our_entry_alone(desk: Desk, word: str) -> None:
    text = desk.odd(word)
    file = desk.write(word, text)
    desk.join(word)
    later = "\n[later]\nx = 1\n" if word == "codex" else "// later\n"
    file.write_text(file.read_text() + later)
    planned = desk.part(word)
    assert "changed since" in planned.note
    assert file.read_text() == text + later
    assert len(desk.copies) == 2  # also of what others wrote
    assert not desk.part(word).changes


@pytest.mark.parametrize("word", WORDS)
def test_a_file_that_was_not_there_goes_again_with_its_folders(desk: Desk, word: str) -> None:
    before = sorted(desk.user.rglob("*"))
    planned = desk.join(word)
    file = planned.seen.target.file
    assert file.stat().st_mode & 0o777 == 0o600
    assert desk.part(word).after is None
    left = [path for path in sorted(desk.user.rglob("*")) if "connections" not in path.parts]
    assert left == before


def test_a_folder_that_others_use_meanwhile_stays(desk: Desk) -> None:
    desk.join("cursor")
    (desk.user / ".cursor" / "rules").write_text("theirs")
    desk.part("cursor")
    assert [one.name for one in (desk.user / ".cursor").iterdir()] == ["rules"]


def test_undo_goes_back_to_what_was_before_the_first_time(desk: Desk) -> None:
    file = desk.write("cursor", ODD.replace("TABLE", "mcpServers"))
    desk.join("cursor")
    desk.join("cursor", http=True)
    record = desk.connections.find(file, "openfang")
    assert record
    assert (record.key, record.restorable) == ("key_1", True)
    desk.part("cursor")
    assert file.read_text() == ODD.replace("TABLE", "mcpServers")
    assert desk.connections.find(file, "openfang") is None


def test_what_others_wrote_between_two_of_our_changes_is_not_lost_by_undo(desk: Desk) -> None:
    file = desk.write("cursor", '{"mcpServers": {"a": {}}}\n')
    desk.join("cursor")
    file.write_text(file.read_text().replace('"a": {}', '"a": {}, "b": {}'))
    desk.join("cursor", http=True)
    assert "changed since" in desk.part("cursor").note
    assert file.read_text() == '{"mcpServers": {"a": {}, "b": {}}}\n'


def test_a_second_time_changes_nothing(desk: Desk) -> None:
    file = desk.write("claude-code", "{}")
    desk.join("claude-code")
    before = (file.read_bytes(), file.stat().st_mtime_ns, desk.copies)
    assert not desk.join("claude-code").changes
    assert (file.read_bytes(), file.stat().st_mtime_ns, desk.copies) == before


def test_several_entries_of_one_file_come_and_go_by_themselves(desk: Desk) -> None:
    file = desk.write("vscode", '{\n\t"servers": {\n\t\t"a": {}\n\t}\n}')
    before = file.read_text()
    desk.join("vscode")
    desk.join("vscode", name="second")
    desk.part("vscode")
    assert list(read(file)["servers"]) == ["a", "second"]
    desk.part("vscode", "second")
    assert file.read_text() == before


def test_no_copy_ever_takes_the_place_of_another(desk: Desk) -> None:
    file = desk.write("cursor", "{}")
    texts = {"{}"}
    for number in range(3):  # within one second, which their names are made of
        desk.join("cursor")
        desk.part("cursor")
        texts.add(f'{{"n": {number}}}')
        file.write_text(f'{{"n": {number}}}')
    desk.join("cursor")
    assert {copy.decode() for copy in desk.copies} == texts
    assert all(one.stat().st_mode & 0o777 == 0o600 for one in desk.connections.folder.iterdir())


@pytest.mark.parametrize(
    "entry",
    [
        '{"command": "other"}',
        '{"url": "https://x.example"}',
        '{"command": "half \\ud83d of a pair"}',
        "{}",
        "null",
        "1",
    ],
)
def test_an_entry_that_is_not_ours_is_never_touched(desk: Desk, entry: str) -> None:
    text = f'{{"mcpServers": {{"openfang": {entry}}}}}'
    file = desk.write("cursor", text)
    for act in (desk.join, desk.part):
        with pytest.raises(Conflict) as refused:
            act("cursor")
        assert "--name" in refused.value.way_out
    assert file.read_text() == text
    assert not desk.connections.folder.exists()


def test_what_else_stands_in_our_entry_is_kept(desk: Desk) -> None:
    old = {
        "command": "openfang",
        "args": ["mcp", "--old"],
        "env": {"OPENFANG_HOME": "/gone", "HTTPS_PROXY": "http://proxy"},
        "disabled": True,
    }
    file = desk.write("cursor", json.dumps({"mcpServers": {"openfang": old}}))
    desk.join("cursor")
    kept = {**STARTED, "env": {"HTTPS_PROXY": "http://proxy"}, "disabled": True}
    assert read(file) == {"mcpServers": {"openfang": kept}}
    file.write_text(file.read_text() + "\n")
    assert (
        desk.part("cursor").after == json.dumps({"mcpServers": {"openfang": old}}).encode() + b"\n"
    )


def test_an_entry_that_led_to_us_before_the_port_changed_is_still_ours(desk: Desk) -> None:
    desk.write("cursor", "{}")
    desk.join("cursor", http=True)
    moved = see(desk.target("cursor"), desk.connections, frozenset(), desk.environ)
    assert moved.ours
    foreign = see(
        desk.target("cursor"), Connections(desk.user / "other"), frozenset(), desk.environ
    )
    assert not foreign.ours


@pytest.mark.parametrize(
    ("word", "content"),
    [
        *((word, b"{") for word in JSON_WORDS),
        ("codex", b"a = "),
        ("codex", b"mcp_servers = 1"),
        ("cursor", b"\xff\xfe{}"),
        ("cursor", b"[]"),
        ("cursor", b'{"mcpServers": []}'),
        ("cursor", b'{"mcpServers": {}, "mcpServers": {}}'),
    ],
)
def test_a_broken_file_is_refused_by_its_name_and_left_alone(
    desk: Desk, word: str, content: bytes
) -> None:
    file = desk.write(word, "")
    file.write_bytes(content)
    for act in (desk.join, desk.part):
        with pytest.raises(ConfigError) as refused:
            act(word)
        assert str(file) in refused.value.message
        assert refused.value.way_out
    assert file.read_bytes() == content
    assert not desk.connections.folder.exists()


@pytest.mark.parametrize("text", ['mcp_servers = { a = { command = "x" } }\n', "mcp_servers = {}"])
def test_a_way_of_writing_that_cannot_be_added_to_is_left_to_an_editor(
    desk: Desk, text: str
) -> None:
    file = desk.write("codex", text)
    with pytest.raises(ConfigError, match="by hand") as refused:
        desk.join("codex")
    assert "[mcp_servers.openfang]" in refused.value.way_out
    assert file.read_text() == text


@pytest.mark.parametrize("kind", ["folder", "fifo", "ring", "lost link", "lost folder", "below"])
def test_what_is_no_file_is_refused(desk: Desk, kind: str) -> None:
    file = desk.target("cursor").file
    if kind == "below":
        file.parent.write_text("a file where the folder should be")
    elif kind == "lost folder":
        file.parent.symlink_to(desk.user / "unmounted")
    else:
        file.parent.mkdir()
    match kind:
        case "folder":
            file.mkdir()
        case "fifo":
            os.mkfifo(file)
        case "ring":
            file.symlink_to(file)
        case "lost link":
            file.symlink_to(desk.user / "unmounted" / "mcp.json")
        case _:
            pass
    before = sorted(desk.user.rglob("*"))
    with pytest.raises(ConfigError):
        desk.join("cursor")
    assert sorted(desk.user.rglob("*")) == before


def test_a_link_is_followed_and_stays_one(desk: Desk) -> None:
    dotfiles = desk.user / "dotfiles"
    dotfiles.mkdir()
    real = dotfiles / "cursor.json"
    real.write_text("{}\n")
    file = desk.target("cursor").file
    file.parent.mkdir()
    file.symlink_to(real)
    desk.join("cursor")
    assert (file.is_symlink(), list(read(real)["mcpServers"])) == (True, ["openfang"])
    desk.part("cursor")
    assert (file.is_symlink(), real.read_text()) == (True, "{}\n")
    real.unlink()
    desk.join("cursor")
    assert list(read(real)["mcpServers"]) == ["openfang"]
    desk.part("cursor")
    assert (file.is_symlink(), real.exists()) == (True, False)


def test_a_file_that_is_read_only_is_refused(desk: Desk) -> None:
    file = desk.write("cursor", "{}")
    file.chmod(0o444)
    with pytest.raises(ConfigError, match="read-only") as refused:
        require_writable(desk.seen("cursor").held)
    assert "chmod" in refused.value.way_out


def test_who_writes_between_look_and_act_is_not_overwritten(desk: Desk) -> None:
    file = desk.write("cursor", "{}")
    planned = join(desk.seen("cursor"), find_form("cursor").command(COMMAND, {}))
    file.write_text('{"theirs": 1}')
    with pytest.raises(Conflict, match="meanwhile"):
        carry_out(planned, desk.connections)
    assert file.read_text() == '{"theirs": 1}'
    assert desk.connections.find(file, "openfang") is None


def test_without_the_copy_undo_still_takes_out_the_entry(desk: Desk) -> None:
    file = desk.write("cursor", '{"mcpServers": {"a": {}}}')
    desk.join("cursor")
    for copy in desk.connections.folder.glob("*.bak"):
        copy.unlink()
    assert desk.part("cursor").changes
    assert file.read_text() == '{"mcpServers": {"a": {}}}'


def test_an_entry_that_was_written_by_hand_can_be_undone(desk: Desk) -> None:
    file = desk.write("cursor", '{"mcpServers": {"openfang": {"command": "openfang"}}}')
    assert "not known" in desk.part("cursor").note
    assert read(file) == {"mcpServers": {}}


def test_the_program_is_named_so_that_others_find_it(tmp_path: Path) -> None:
    script = tmp_path / "bin" / "openfang"
    script.parent.mkdir()
    python = str(tmp_path / "bin" / "python3")
    assert own_command("openfang", python) == [python, "-m", "openfang"]
    assert own_command("/x/openfang/__main__.py", python) == [python, "-m", "openfang"]
    script.write_text("")
    assert own_command(str(script), python) == [python, "-m", "openfang"]  # not executable
    script.chmod(0o755)
    assert own_command("openfang", python) == [str(script)]
    assert own_command(str(script), "/usr/bin/python3") == [str(script)]


def test_a_home_is_named_only_where_it_is_not_the_usual_one(tmp_path: Path) -> None:
    user = {"HOME": str(tmp_path)}
    assert own_variables(user) == {}
    assert own_variables({**user, "OPENFANG_HOME": "~/.openfang"}) == {}
    assert own_variables({**user, "OPENFANG_HOME": "~/x"}) == {"OPENFANG_HOME": f"{tmp_path}/x"}


@on_linux
@pytest.mark.parametrize(
    ("word", "variable"),
    [
        ("codex", "CODEX_HOME"),
        ("claude-code", "CLAUDE_CONFIG_DIR"),
        ("vscode", "XDG_CONFIG_HOME"),
        ("claude-desktop", "XDG_CONFIG_HOME"),
        ("zed", "XDG_CONFIG_HOME"),
    ],
)
def test_a_folder_that_was_moved_is_found_in_both_directions(
    tmp_path: Path, word: str, variable: str
) -> None:
    environ: Mapping[str, str] = {"HOME": str(tmp_path), variable: str(tmp_path / "moved")}
    file = written_file(find_form(word).client, environ)
    assert file.is_relative_to(tmp_path / "moved")
    file.parent.mkdir(parents=True)
    file.write_text("")
    assert [one.path for one in usual_files(environ, tmp_path / "x")] == [file]


def test_a_client_is_found_by_any_of_its_names() -> None:
    for name in ("vscode", "VS Code", "vs-code"):
        assert find_form(name).word == "vscode"
    with pytest.raises(NotFound) as refused:
        find_form("emacs")
    assert all(word in refused.value.way_out for word in WORDS)


def test_a_file_of_a_project_is_where_the_program_looks_for_it(desk: Desk) -> None:
    expected = {
        "cursor": ".cursor/mcp.json",
        "vscode": ".vscode/mcp.json",
        "claude-code": ".mcp.json",
        "codex": ".codex/config.toml",
        "gemini": ".gemini/settings.json",
        "zed": ".zed/settings.json",
    }
    for word in WORDS:
        form = find_form(word)
        if word in expected:
            target = find_target(form, desk.environ, desk.user / "p", project=True)
            assert target.file == desk.user / "p" / expected[word]
        else:
            with pytest.raises(ConfigError, match="no file of a project"):
                find_target(form, desk.environ, desk.user / "p", project=True)


def test_a_survey_tells_how_each_is(desk: Desk) -> None:
    desk.join("cursor")
    desk.join("cursor", http=True, name="by-http")
    desk.write("windsurf", "{")
    desk.write("zed", "{}")
    (desk.user / ".claude").mkdir()
    project = desk.user / "p"
    (project / ".vscode").mkdir(parents=True)
    (project / ".vscode" / "mcp.json").write_text('{"servers": {"x": {"command": "openfang"}}}')
    found = survey(desk.environ, project, OWN)
    assert [one.form.word for one in found] == [*WORDS, "vscode"]
    told = {(one.form.word, one.here, bool(one.problem), *one.ways.items()) for one in found}
    assert told == {
        ("cursor", True, False, ("openfang", "stdio"), ("by-http", "http")),
        ("vscode", False, False),
        ("claude-desktop", False, False),
        ("claude-code", True, False),
        ("windsurf", True, True),
        ("codex", False, False),
        ("gemini", False, False),
        ("zed", True, False),
        ("vscode", True, False, ("x", "stdio")),
    }
