# ruff: noqa: E501 - a table of mistakes
"""`manifest.json`: read strictly, with file, line, key and what was expected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.config.test_schema import row

from openfang.app.installs.starters import new_extension
from openfang.config.extension_manifests import json_schema, read_manifest, settings
from openfang.config.extensions import ExtensionSettings
from openfang.core.errors import ConfigError
from openfang.core.tools import Effect, Risk, Sink, Trust

pytestmark = pytest.mark.requirement("C6.3")

TOOL: dict[str, Any] = {"name": "look", "input_schema": {"type": "object"}}
LEAST: dict[str, Any] = {
    "id": "one", "version": "1.0.0", "runtime": "python", "capabilities": [TOOL],
}  # fmt: skip


def written(folder: Path, manifest: object, *files: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1))
    for file in files or ("main.py", "main.js"):
        (folder / file).write_text("")
    return folder


def spec(folder: Path, settings: ExtensionSettings | None = None) -> Any:
    read = read_manifest(folder, user=Path("/home/ada"))
    settings = settings or ExtensionSettings()
    return read.spec(folder=folder, workspace=folder / "w", settings=settings)


def problems(folder: Path, manifest: object) -> str:
    with pytest.raises(ConfigError) as caught:
        read_manifest(written(folder, manifest))
    return caught.value.message


@pytest.mark.parametrize(("kind", "entry"), [("python", "main.py"), ("node", "main.js")])
def test_what_a_new_one_begins_with_is_right(tmp_path: Path, kind: str, entry: str) -> None:
    for name, text in new_extension("words", node=kind == "node").items():
        (tmp_path / name).write_text(text)
    found = spec(tmp_path)
    assert (found.id, found.runtime.kind, found.runtime.entry) == ("words", kind, (entry,))
    assert [one.name for one in found.capabilities] == ["count_words"]


def test_a_manifest_says_all_that_an_extension_is(tmp_path: Path) -> None:
    manifest = {
        **LEAST,
        "name": "One",
        "runtime": {
            "kind": "python", "entry": "lib/tools.py", "python": "3.12",
            "requirements": ["requests==2.32.3", f"idna==3.10 --hash=sha256:{'ab' * 32}"],
            "limits": {"memory_bytes": 64 << 20, "cpu_seconds": 5},
        },
        "capabilities": [
            {
                **TOOL, "title": "Look", "description": "Looks.", "risk": "MED",
                "side_effect_tags": ["network.http"], "effect": "external_read",
                "targets": ["url"], "timeout_secs": 5, "tool_name": "look_at",
                "annotations": {"readOnlyHint": True},
            }
        ],
        "permissions": {
            "tools": ["file_read", "mcp:github:*"], "memory_read": ["notes.*"],
            "memory_write": ["notes.*"], "network": True, "fs_read": ["~/notes"],
            "fs_write": ["/srv/out"], "env": ["LANG"],
        },
    }  # fmt: skip
    (tmp_path / "lib").mkdir()
    found = spec(written(tmp_path, manifest, "lib/tools.py"))
    assert (found.title, found.runtime.python) == ("One", "3.12")
    assert found.runtime.requirements[0] == "requests==2.32.3"
    assert found.runtime.requirements[1].endswith(f"--hash=sha256:{'ab' * 32}")
    assert (found.runtime.entry, found.runtime.cpu_seconds) == (("lib/tools.py",), 5)
    tool = found.capabilities[0]
    assert (tool.risk, tool.tags, tool.shown_as) == (Risk.MEDIUM, {"network.http"}, "look_at")
    assert tool.sink == Sink(effect=Effect.EXTERNAL_READ, targets=("url",))
    may = found.permissions
    assert may.grants.tools == ("builtin:file_read", "mcp:github:*")
    assert (may.grants.memory_read, may.grants.memory_write) == (("notes.*",), ("notes.*",))
    assert (may.network, may.read, may.write) == (
        True, (Path("/home/ada/notes"),), (Path("/srv/out"),),
    )  # fmt: skip
    assert may.variables == ("LANG",)


def test_the_operator_narrows_the_network_and_adds_paths(tmp_path: Path) -> None:
    manifest = {**LEAST, "permissions": {"network": True}}
    settings = ExtensionSettings(
        network=False,
        fs_read=("/srv/a",),
        fs_write=("/srv/b",),
        trust=Trust.LOW,
        sandbox="required",
        timeout_secs=3,
        max_concurrency=2,
    )
    found = spec(written(tmp_path, manifest), settings)
    assert (found.permissions.network, found.permissions.read) == (False, (Path("/srv/a"),))
    assert found.permissions.write == (Path("/srv/b"),)
    assert (found.trust, found.sandbox, found.timeout, found.at_once) == (
        Trust.LOW, "required", 3, 2,
    )  # fmt: skip
    assert not spec(written(tmp_path, LEAST), ExtensionSettings(network=True)).permissions.network


def test_agentos_writes_it_in_its_own_words(tmp_path: Path) -> None:
    manifest = {
        **LEAST,
        "python": {"version": "3.11", "dependencies": ["httpx==0.28.1"]},
        "permissions_required": ["read_status", "fs_read", "network_http", "builtin.exec"],
        "external_bins": [], "entrypoint": None, "platforms": ["linux", "darwin"],
        "icon": "icon.png", "docs": {"usage": "docs/USAGE.md"},
    }  # fmt: skip
    found = spec(written(tmp_path, manifest))
    assert (found.runtime.python, found.runtime.requirements) == ("3.11", ("httpx==0.28.1",))
    assert found.permissions.network
    assert found.permissions.grants.tools == ("builtin:file_read", "builtin:file_list")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"surprise": 1}, "surprise: unknown key"),
        ({"id": "../x"}, "id: expected an id of letters and digits"),
        ({"id": "a:b"}, "id: expected an id of letters and digits"),
        ({"version": "new"}, "version: expected a version such as 1.2.0"),
        ({"runtime": "ruby"}, 'runtime: expected "python", "node" or "mcp"'),
        ({"runtime": "mcp"}, 'runtime: expected a table with "kind": "mcp"'),
        ({"runtime": {"kind": "mcp"}}, '`command` and no `entry` where kind is "mcp"'),
        ({"runtime": {"kind": "mcp", "command": ["./no"]}}, 'expected a file of the folder, got "./no"'),
        ({"runtime": {"kind": "mcp", "command": ["sh", "../x"]}}, "a path without `..`"),
        ({"entry": "../main.py"}, "entry: expected a path inside the"),
        ({"entry": "/main.py"}, "entry: expected a path inside the"),
        ({"entry": "gone.py"}, 'entry: expected a file of the folder, got "gone.py"'),
        ({"capabilities": []}, "capabilities: expected at least one"),
        ({"capabilities": [TOOL, TOOL]}, '"look" is there twice'),
        ({"capabilities": [{**TOOL, "input_schema": {"type": "string"}}]}, '"type": "object"'),
        ({"capabilities": [{**TOOL, "input_schema": {"type": "object", "required": 5}}]}, "a JSON Schema that can be used"),
        ({"capabilities": [{**TOOL, "risk": "SOME"}]}, "capabilities.look.risk: expected"),
        ({"capabilities": [{**TOOL, "side_effect_tags": ["fun"]}]}, "side_effect_tags"),
        ({"capabilities": [{**TOOL, "targets": ["url"]}]}, "`effect` beside `targets`"),
        ({"capabilities": [{**TOOL, "command": "/x"}]}, "a capability is a tool, called by its name"),
        ({"capabilities": [{**TOOL, "type": "agent"}]}, 'type: expected "tool", got "agent"'),
        ({"capabilities": [{**TOOL, "runner": "exec.sh"}]}, "the extension's own process runs"),
        ({"permissions": ["exec_shell"]}, "no extension gets a shell of the machine"),
        ({"permissions": ["fly"]}, "permissions"),
        ({"permissions": {"fs_read": ["/"]}}, "not all there is"),
        ({"permissions": {"fs_read": ["/."]}}, "not all there is"),
        ({"permissions": {"fs_write": ["~/"]}}, "not all there is"),
        ({"permissions": {"fs_write": ["~/./"]}}, "not all there is"),
        ({"permissions": {"fs_write": ["/usr/.."]}}, "not all there is"),
        ({"permissions": {"env": ["OPENFANG_API_KEY"]}}, "and not OPENFANG_API_KEY"),
        ({"permissions": {"env": ["LD_PRELOAD"]}}, "and not LD_PRELOAD"),
        ({"permissions": {"fs_read": ["notes"]}}, "an absolute path"),
        ({"permissions": {"tools": ["fil_read"]}}, "permissions.tools: expected a tool that exists"),
        ({"external_bins": ["ffmpeg"]}, "nothing is installed on the machine"),
        ({"install": {"mode": "agentos_managed"}}, "nothing of an extension runs while it is"),
        ({"entrypoint": "main:run"}, "null here, and the file in `entry`"),
        ({"platforms": ["win32"]}, 'platforms: expected "linux" or "all"'),
        ({"python": {"dependencies": ["httpx>=0.2"]}}, "a package with its exact version"),
        ({"python": {"dependencies": ["git+https://x/y"]}}, "a package, such as name==1.2"),
        ({"config": {"KEY": {"required": True, "default": "x"}}}, "config.KEY.default: expected none"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_mistake_is_told_with_its_key_and_what_was_expected(
    tmp_path: Path, changed: dict[str, Any], told: str
) -> None:
    assert told in problems(tmp_path, {**LEAST, **changed})


def test_all_mistakes_are_told_at_once_each_with_its_line(tmp_path: Path) -> None:
    found = problems(tmp_path, {**LEAST, "version": "x", "surprise": 1}).splitlines()
    assert [line.partition(": ")[0] for line in found] == ["manifest.json:3", "manifest.json:13"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "manifest.json:1"),
        ('{"id": "a", "id": "b"}', "manifest.json"),
        ("[]", "expected a table in braces"),
        ("\xff", "manifest.json"),
    ],
)
def test_what_is_no_json_is_told_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "manifest.json").write_text(text, encoding="latin-1")
    with pytest.raises(ConfigError) as caught:
        read_manifest(tmp_path)
    assert told in caught.value.message


def test_a_folder_without_a_manifest_is_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"manifest\.json: cannot be read"):
        read_manifest(tmp_path)


def test_the_schema_describes_every_key() -> None:
    found = json_schema()
    assert found["additionalProperties"] is False
    for name, key in found["properties"].items():
        assert key.get("description"), name


def test_the_page_explains_exactly_the_keys_that_there_are() -> None:
    page = (Path(__file__).parents[2] / "docs/extensions.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `") and line.count("|") > 4]
    assert sorted(rows) == sorted(map(row, settings()))


def test_the_example_of_the_page_is_right(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/extensions.md").read_text("utf-8")
    example = page.partition('```json title="manifest.json"\n')[2].partition("```")[0]
    assert spec(written(tmp_path, json.loads(example))).permissions.network
