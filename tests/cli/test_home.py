"""Configuration, the doctor, and the demonstration."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

pytestmark = pytest.mark.requirement("C2.8")


@pytest.mark.requirement("C2.6", "C2.8")
def test_a_wrong_configuration_is_named_by_file_line_and_key(fresh: Cli) -> None:
    assert fresh("config", "check").code == 0
    fresh.configure('[limits]\nburst = "many"\nbrust = 1')
    lines = (fresh.home / "config.toml").read_text().splitlines()
    at = lines.index('burst = "many"') + 1
    ran = fresh("config", "check")
    assert ran.code == 1
    first, second = ran.out.splitlines()
    assert first.startswith(f"config.toml:{at}: limits.burst: expected a whole number")
    assert second.startswith(f"config.toml:{at + 1}: limits.brust: ")
    shown = fresh("config", "check", "--json").json
    assert [(problem["line"], problem["key"]) for problem in shown] == [
        (at, "limits.burst"),
        (at + 1, "limits.brust"),
    ]
    stopped = fresh("tools", "list")
    assert stopped.code == 1
    assert f"config.toml:{at}: limits.burst" in stopped.err
    assert "then: openfang config check" in stopped.err


@pytest.mark.requirement("C2.1")
def test_the_configuration_in_force_is_shown_without_its_secrets(fresh: Cli) -> None:
    text = (fresh.home / "config.toml").read_text()
    (fresh.home / "config.toml").write_text(f'api_key = "very-secret-indeed"\n{text}')
    ran = fresh("config", "show", env={"OPENFANG_LISTEN": "127.0.0.1:5999"})
    assert 'api_listen = "127.0.0.1:5999"' in ran.out
    assert "very-secret" not in ran.out
    assert fresh("config", "show", "--json").json["policy"]["profile"] == "guided"
    assert fresh("config", "path").out == f"{fresh.home / 'config.toml'}\n"
    used = fresh.call("system_time", env={"OPENFANG_API_KEY": "very-secret-indeed"})
    assert used.code == 0


@pytest.mark.requirement("C2.8")
def test_the_schema_is_the_list_of_keys(openfang: Cli) -> None:
    schema = openfang("config", "schema").json
    assert {"api_listen", "mcp_servers", "policy", "tools"} <= schema["properties"].keys()


def test_a_home_in_order_passes_the_doctor(openfang: Cli) -> None:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.listen()
        taken = openfang("doctor", "--json", env={"OPENFANG_LISTEN": f"127.0.0.1:{port}"})
    assert taken.code == 0
    health = {check["check"]: check for check in taken.json}
    assert health["api_listen"]["health"] == "warn"
    wanted = {"home", "permissions", "configuration", "database", "schema", "clock", "processes"}
    assert {name for name in wanted if health[name]["health"] == "ok"} == wanted
    for layer in ("bwrap", "landlock", "seccomp", "user namespaces"):
        assert layer in health["sandbox layers"]["text"]
    assert openfang("doctor").out.startswith("CHECK ")


def test_the_doctor_finds_what_is_wrong_and_says_what_mends_it(fresh: Cli) -> None:
    (fresh.home / "key").chmod(0o644)
    with (fresh.home / "openfang.db").open("r+b") as file:
        file.seek(2048)
        file.write(os.urandom(8192))
    ran = fresh("doctor", "--json")
    assert ran.code == 1
    failed = {check["check"]: check["fix"] for check in ran.json if check["health"] == "fail"}
    assert failed["permissions"] == f"chmod 600 {fresh.home / 'key'}"
    assert "backup" in failed["database"]


def test_the_doctor_says_who_keeps_the_database_from_being_written_to(fresh: Cli) -> None:
    with closing(sqlite3.connect(fresh.home / "openfang.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        ran = fresh("doctor", "--json")
    (found,) = [check for check in ran.json if check["check"] == "writing"]
    assert (ran.code, found["health"]) == (1, "fail")
    assert found["text"].endswith(f"(pid {os.getpid()})")


@pytest.mark.requirement("C6.4")
def test_the_doctor_says_which_models_have_no_key_or_no_address(fresh: Cli) -> None:
    for name, provider in (("coder", "openai"), ("lost", "opnai")):
        folder = fresh.home / "agents" / name
        folder.mkdir(parents=True)
        text = f'name = "{name}"\n[model]\nprovider = "{provider}"\nmodel = "m"\n'
        (folder / "agent.toml").write_text(text)
    found = _models(fresh("doctor", "--json").json)
    assert found == [
        ("warn", "coder: openai needs a key, and OPENAI_API_KEY is not set."),
        ("warn", "lost: Nobody has said where the provider opnai is."),
    ]
    fresh.configure('[providers.opnai]\nbase_url = "https://models.example.org/v1"')
    keyed = fresh("doctor", "--json", env={"OPENAI_API_KEY": "sk-a-key-of-nobody"})
    assert _models(keyed.json) == [
        ("ok", "each has an address, and a key where it needs one"),
    ]
    assert "sk-a-key" not in keyed.out


@pytest.mark.requirement("C8.4", "C11.3")
def test_the_doctor_says_what_is_held_back_and_which_peers_have_no_key(fresh: Cli) -> None:
    assert fresh("keys", "create", "known").code == 0
    fresh.configure(
        "".join(
            f'[[mcp_servers]]\nname = "{name}"\nenabled = false\ncomes_as = "{key}"\n'
            f'transport = {{ type = "http", url = "https://{name}.example" }}\n'
            for name, key in (("near", "known"), ("far", "unknown"))
        )
    )
    with closing(sqlite3.connect(fresh.home / "openfang.db")) as database, database:
        columns = "tool, digest, definition, first_seen, accepted"
        values = "'mcp:near:read', '00', '{}', 1, 0"
        database.execute(f"INSERT INTO pins ({columns}) VALUES ({values})")  # noqa: S608 - ours
    found = {one["check"]: one for one in fresh("doctor", "--json").json}
    assert "mcp:near:read" in found["definitions"]["text"]
    assert "openfang servers accept" in found["definitions"]["fix"]
    assert found["peers"]["text"] == "there is no such key: far comes as unknown"


def _models(checks: list[dict[str, str]]) -> list[tuple[str, str]]:
    return [(one["health"], one["text"]) for one in checks if one["check"] == "models"]


def test_the_doctor_works_without_a_home_and_with_a_broken_configuration(
    fresh: Cli, tmp_path: Path
) -> None:
    ran = fresh("doctor", "--json", env={"OPENFANG_HOME": str(tmp_path / "none")})
    assert (ran.code, ran.json[0]["fix"]) == (1, "openfang init")
    fresh.configure("nonsense = 1")
    broken = fresh("doctor", "--json")
    failed = [check["check"] for check in broken.json if check["health"] == "fail"]
    assert (broken.code, failed) == (1, ["configuration"])


@pytest.mark.requirement("C19.1")
def test_the_demonstration_runs_again_and_again(openfang: Cli, tmp_path: Path) -> None:
    environment = openfang.environment()
    del environment["OPENFANG_HOME"]
    for _ in range(2):
        done = subprocess.run(
            openfang.command("demo"),
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            check=False,
        )
        output = done.stdout.decode()
        assert (done.returncode, done.stderr) == (0, b"")
        for word in ("ALLOWED", "REFUSED", "ASKS", "EXPLAINED", "ON RECORD"):
            assert f"\n{word}: " in output
        assert "Policy violation: Planning mode cannot use tools with side effects" in output
        assert "and a person agreed." in output
        assert "The audit log is intact." in output
    assert (tmp_path / ".openfang/workspaces/key-admin/notes.txt").exists()


AS_NOBODY = """
import json, os, pathlib, sys
from openfang.app.home.doctor import examine
if os.geteuid() == 0:
    os.seteuid(65534)
found = examine(pathlib.Path(sys.argv[1]), {}, 0)
print(json.dumps([(one.name, one.health.value, one.text, one.fix) for one in found]))
"""


@pytest.mark.requirement("C18.1")
def test_the_doctor_says_whose_a_home_is_that_it_cannot_read(fresh: Cli) -> None:
    fresh.home.chmod(0)
    try:
        done = subprocess.run(
            (sys.executable, "-c", AS_NOBODY, str(fresh.home)),
            capture_output=True,
            check=True,
            timeout=60,
        )
    finally:
        fresh.home.chmod(0o700)
    found = {check: (health, text, fix) for check, health, text, fix in json.loads(done.stdout)}
    health, text, fix = found["home"]
    assert (health, "Permission denied" in text) == ("fail", True)
    assert fix.startswith("chown -R ")
    assert "OPENFANG_HOME" in fix
    assert "disk" in found
