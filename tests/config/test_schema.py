"""The published schema is the list of keys: none is missing, each is described and explained."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import jsonschema_rs
import pytest

from openfang.config.load import check
from openfang.config.schema import DRAFT, Setting, json_schema, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.requirement("C2.8")

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs/configuration.md").read_text("utf-8")
SETTINGS = {setting.key: setting for setting in settings()}
SEEDS = sorted((ROOT / "tests/data/seeds").glob("*-config.toml"))

# Copied from the contract by hand, word by word.
KEYS_OF_THE_CONTRACT = """
api_key api_listen public_url log_level include
mcp_servers[].name mcp_servers[].transport mcp_servers[].transport.type
mcp_servers[].transport.command mcp_servers[].transport.args mcp_servers[].transport.url
mcp_servers[].transport.headers mcp_servers[].timeout_secs mcp_servers[].env
mcp_servers[].enabled mcp_servers[].allow_tools mcp_servers[].deny_side_effect_tags
mcp_servers[].trust mcp_servers[].allow_private mcp_servers[].lazy mcp_servers[].sandbox
mcp_servers[].network mcp_servers[].fs_read mcp_servers[].fs_write mcp_servers[].max_concurrency
a2a.enabled a2a.listen_path a2a.primary_agent a2a.max_tasks a2a.card
a2a.external_agents[].name a2a.external_agents[].url a2a.external_agents[].auth
a2a.external_agents[].allow_private a2a.push.allow_private nodes[].allow_private
approvals.webhook.allow_private tools.web_fetch.allow_private
policy.profile plugins.gates plugins.adapters plugins.audit_handlers
limits.cells_per_minute limits.burst limits.costs.message limits.costs.call limits.costs.health
auth.require_key auth.issuer toolsets.NAME.servers toolsets.NAME.tools toolsets.NAME.agents
toolsets.NAME.prefix toolsets.NAME.rename toolsets.NAME.descriptions toolsets.NAME.mode
loops.warn loops.block
""".split()  # noqa: SIM905 - fifty quoted words would hide the list


def row(setting: Setting) -> str:
    """The line of the page that explains a key."""
    kind = setting.kind.replace("|", "\\|")
    return f"| `{setting.key}` | {kind} | {default(setting)} | {setting.description} |"


def default(setting: Setting) -> str:
    if setting.required:
        return "required"
    if setting.default is None:
        return "unset"
    if setting.kind == "a table" and setting.default:
        return "as below"
    return f"`{json.dumps(setting.default)}`"


@pytest.mark.parametrize("key", KEYS_OF_THE_CONTRACT)
def test_a_key_of_the_contract_is_in_the_schema(key: str) -> None:
    assert key in SETTINGS


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_every_key_has_a_type_a_default_and_a_description(setting: Setting) -> None:
    assert setting.kind
    assert setting.kind != "a value"
    assert re.fullmatch(r"[A-Z`].*\.", setting.description)


def properties(node: object) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Every property of every object in a schema, and whether it is required."""
    if isinstance(node, list):
        for entry in cast("list[object]", node):
            yield from properties(entry)
    if isinstance(node, dict):
        table = cast("dict[str, Any]", node)
        for key, value in table.get("properties", {}).items():
            yield key, value, key in table.get("required", [])
        for value in table.values():
            yield from properties(value)


def test_every_property_of_the_published_schema_is_typed_and_either_required_or_defaulted() -> None:
    found = list(properties(json_schema()))
    assert len(found) > 120
    for key, node, required in found:
        assert {"type", "$ref", "anyOf", "oneOf", "const", "enum"} & node.keys(), key
        assert required or "default" in node, key
        assert node.get("description"), key


def test_the_schema_is_valid_and_refuses_what_the_reader_refuses(home: Path) -> None:
    schema = json_schema()
    assert schema["$schema"] == DRAFT
    jsonschema_rs.meta.validate(schema)
    validator = jsonschema_rs.Draft202012Validator(schema)
    home.mkdir()
    texts = [path.read_text("utf-8") for path in SEEDS] + ["log_levle = 1", "[limits]\nburst = 0\n"]
    for text in texts:
        (home / "config.toml").write_text(text, "utf-8")
        assert validator.is_valid(tomllib.loads(text)) is (check(home, {}) == ())


def test_the_page_explains_exactly_the_keys_that_there_are() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]
    assert sorted(rows) == sorted(row(setting) for setting in SETTINGS.values())


BUILTINS = (ROOT / "docs/builtins.md").read_text("utf-8")
EXAMPLES = re.findall(r"^```toml\n(.*?)^```", PAGE + BUILTINS, re.MULTILINE | re.DOTALL)


@pytest.mark.requirement("C19.3")
@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_of_the_page_loads(home: Path, example: str) -> None:
    home.mkdir()
    (home / "config.toml").write_text(example, "utf-8")
    for name in ("team.toml", "servers.yaml"):
        (home / name).write_text("" if name.endswith("toml") else "mcp_servers: []\n", "utf-8")
    assert check(home, {}) == ()


@pytest.mark.requirement("C19.3")
def test_the_page_shows_the_message_that_a_mistake_gives(home: Path) -> None:
    home.mkdir()
    found = re.search(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert found
    server = '[[mcp_servers]]\nname = "github"\ntransport = { type = "stdio", command = "npx" }\n'
    (home / "config.toml").write_text("\n" * 8 + server + "timeout_secs = -1\n", "utf-8")
    assert [str(problem) for problem in check(home, {})] == found[1].splitlines()
