"""The published schemas of the manifests are the list of their keys; the page explains each."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import get_args

import jsonschema_rs
import pytest
from tests.config import manifest_behaviour
from tests.config.test_schema import properties, row

from openfang.config.manifests import FileName, check_manifests, json_schema, settings
from openfang.config.schema import DRAFT

pytestmark = pytest.mark.requirement("C2.8")

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs/manifests.md").read_text("utf-8")
FILES: tuple[FileName, ...] = get_args(FileName)
BEHAVIOUR = {"agent.toml": manifest_behaviour.TOML, "agent.json": manifest_behaviour.JSON}
PROMISED = [(file, key, test) for file in FILES for key, test in BEHAVIOUR[file].items()]

# Copied from the contract and the seed by hand.
KEYS_OF_THE_CONTRACT = """
name description model.model model.system_prompt capabilities.tools capabilities.network
capabilities.memory_read capabilities.memory_write capabilities.agent_message
capabilities.agent_spawn capabilities.agent_kill capabilities.shell
mcp.expose_tools mcp.private_tools mcp.expose_resources
policy.mode policy.project policy.spec policy.blacklist published
""".split()  # noqa: SIM905 - twenty quoted words would hide the list


def keys(file: FileName) -> list[str]:
    return [setting.key for setting in settings(file)]


@cache
def functions(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in tree.body if isinstance(node, kinds))


@pytest.mark.parametrize("key", KEYS_OF_THE_CONTRACT)
def test_a_key_of_the_contract_is_in_the_schema(key: str) -> None:
    assert key in keys("agent.toml")


@pytest.mark.parametrize("file", FILES)
def test_every_key_has_a_type_a_default_and_a_description(file: FileName) -> None:
    found = list(properties(json_schema(file)))
    assert len(found) > 50
    for key, node, required in found:
        assert {"type", "$ref", "anyOf", "oneOf", "const", "enum"} & node.keys(), key
        assert required or "default" in node, key
        assert re.fullmatch(r"[A-Z`].*\.", node["description"]), key


@pytest.mark.parametrize("file", FILES)
def test_every_key_stands_in_the_table_of_behaviour_and_no_other(file: FileName) -> None:
    known = keys(file)
    leaves = [
        key for key in known if not any(k.startswith((f"{key}.", f"{key}[].")) for k in known)
    ]
    assert sorted(BEHAVIOUR[file]) == sorted(leaves)


@pytest.mark.parametrize(("file", "key", "test"), PROMISED)
def test_the_table_names_a_test_that_exists_or_the_part_to_come(
    file: FileName, key: str, test: str
) -> None:
    if test == manifest_behaviour.OPEN:
        return
    path, _, name = test.partition("::")
    assert name in functions(path), (file, key)


@pytest.mark.parametrize("file", FILES)
def test_the_page_explains_exactly_the_keys_that_there_are(file: FileName) -> None:
    title = f"## Every key of `{file}`\n"
    section = PAGE.partition(title)[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    assert rows == [row(setting) for setting in settings(file)]


EXAMPLES: list[tuple[str, str]] = re.findall(
    r"^```(toml|json)[^\n]*\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL
)


@pytest.mark.requirement("C19.3")
@pytest.mark.parametrize(("kind", "text"), EXAMPLES)
def test_an_example_of_the_page_loads(home: Path, kind: str, text: str) -> None:
    folder = home / "agents/coder"
    folder.mkdir(parents=True)
    (folder / f"agent.{kind}").write_text(text, "utf-8")
    assert check_manifests(home) == ()


@pytest.mark.requirement("C19.3")
def test_the_page_shows_the_message_that_a_mistake_gives(home: Path) -> None:
    folder = home / "agents/coder"
    folder.mkdir(parents=True)
    (folder / "agent.toml").write_text('name = "coder"\n\n[capabilities]\ntools = "*"\n', "utf-8")
    found = re.search(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert found
    assert [str(problem) for problem in check_manifests(home)] == found[1].splitlines()


TEXTS = {
    "agent.toml": {
        'name = "coder"': True,
        'name = "coder"\npriority = "High"\nschedule = { continuous = {} }': True,
        'name = "coder"\nmodule = "python:main.py"\npython = "3.12"\nrequirements = ["a==1"]': True,
        'name = "Coder"': False,
        'name = "coder"\nnmae = 1': False,
        'name = "coder"\n[capabilities]\ntools = "*"': False,
        'name = "coder"\n[plugins]': False,
        'name = "coder"\nschedule = "daily"': False,
        'name = "coder"\n[policy]\nblacklist = ["x"]': False,
        'name = "coder"\n[limits]\ntool_rounds = 0': False,
    },
    "agent.json": {
        '{"identity": {"id": "coder"}}': True,
        '{"identity": {"id": "coder"}, "plugins": [{"name": "a", "config": {"b": [1]}}]}': True,
        '{"identity": {"id": "coder"}, "policy": {"toolTimeout": 0}}': False,
        '{"identity": {"id": "coder"}, "cognition": {"max_tokens": 1}}': False,
        '{"identity": {"id": "coder"}, "mcp": {"exposeTools": []}}': False,
        "{}": False,
    },
}


@pytest.mark.parametrize("file", FILES)
def test_the_schema_is_valid_and_refuses_what_the_reader_refuses(
    home: Path, file: FileName
) -> None:
    schema = json_schema(file)
    assert schema["$schema"] == DRAFT
    jsonschema_rs.meta.validate(schema)
    validator = jsonschema_rs.Draft202012Validator(schema)
    folder = home / "agents/coder"
    folder.mkdir(parents=True)
    for text, valid in TEXTS[file].items():
        (folder / file).write_text(text, "utf-8")
        data = tomllib.loads(text) if file == "agent.toml" else json.loads(text)
        assert validator.is_valid(data) is valid, text
        assert (check_manifests(home) == ()) is valid, text
