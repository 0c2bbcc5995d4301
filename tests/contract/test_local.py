"""A model file behind a daemon: it answers over HTTP, and its process ends with the daemon."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest
from tests.agents.models.gguf import write_model
from tests.agents.models.minds import REACH
from tests.agents.models.test_local import alive, family, told
from tests.contract.house import house, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.contract.house import House

pytestmark = [pytest.mark.timeout(240), pytest.mark.requirement("C6.5")]


def manifest(file: Path) -> dict[str, str]:
    model = f'[model]\nprovider = "local"\nmodel = "{file}"\nmax_tokens = 8\n'
    return {"agents/thinker/agent.toml": f'name = "thinker"\n{model}{REACH}'}


def ask(node: House, agent: str = "thinker", message: str = "hello") -> dict[str, str]:
    return node.ask("POST", f"/api/agents/{agent}/message", {"message": message}).json


def serving(node: House) -> list[int]:
    """The processes that serve a model file below the daemon."""
    everyone = family(node.daemon.process.pid)[1:]
    return [pid for pid in everyone if "agents/local/inside.py" in told(pid, "cmdline")[0]]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_model_file_answers_and_ends_with_the_daemon(
    tmp_path: Path, number: signal.Signals
) -> None:
    file = write_model(tmp_path / "tiny.gguf")
    with house(tmp_path, "", files=manifest(file)) as node:
        answer = ask(node)
        processes = serving(node)
        logged = json.dumps([node.log(), node.records()])
        node.daemon.tell(number)
        node.daemon.ended()
        until(lambda: not alive(processes))

    assert answer["ending"] in {"answered", "length"}
    assert answer["response"]
    assert processes
    assert "Bearer" not in logged


def test_a_broken_model_file_is_a_reason_and_the_node_goes_on(tmp_path: Path) -> None:
    file = write_model(tmp_path / "tiny.gguf")
    file.write_bytes(file.read_bytes()[:9000])
    with house(tmp_path, "", files=manifest(file)) as node:
        failed = ask(node)
        other = ask(node, "assistant", "what time is it?")
        write_model(file)
        mended = ask(node)

    assert failed["ending"] == "failed"
    assert failed["response"].startswith("I stopped: The model file tiny.gguf cannot be loaded.")
    assert other["ending"] == "answered"
    assert mended["ending"] in {"answered", "length"}
