"""Agents whose model is a file: a process of its own serves it, for whoever has its key."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
import pytest
from anyio import to_thread
from tests.agents.models.gguf import write_model
from tests.agents.models.minds import REACH, settings, thinker, thinking
from tests.agents.models.scripted import Says, scripted
from tests.agents.models.test_steps import ask, ended
from tests.agents.test_guests import PARENT, parent, spawn
from tests.agents.test_node import ASSISTANT, put

from openfang.agents.local import inside, models
from openfang.agents.local.weights import find_weights, parts
from openfang.agents.meter import Meter
from openfang.agents.models.failures import ModelFailed
from openfang.agents.spec import Mind
from openfang.app.confine import Confiner
from openfang.core.agents import Image
from openfang.host.backends import Missing
from openfang.host.bridge import interpreter
from openfang.host.witness import look_at

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from openfang.agents.local.models import LocalModels
    from openfang.agents.local.serving import Serving
    from openfang.agents.models.providers import Endpoint
    from openfang.app.agents.running import Agents
    from openfang.testing import OpenApp

pytestmark = [
    pytest.mark.requirement("C6.5"),
    pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:invalid escape sequence:SyntaxWarning"),
]
FEW = "max_tokens = 8\n"
LOCAL = '[model]\nprovider = "local"\nmodel = "tiny.gguf"\n'


@asynccontextmanager
async def housed(
    folder: Path, config: str = "", model: str = "tiny.gguf"
) -> AsyncGenerator[tuple[OpenApp, Agents, LocalModels]]:
    """A node with a model file, and an agent that thinks with it."""
    write_model(folder / "models" / "tiny.gguf")
    thinker(folder, provider="local", model=model, more=FEW)
    async with thinking(folder, config) as (app, agents):
        yield app, agents, await agents.minds._files()


async def spoke(app: OpenApp) -> bool:
    """Whether the agent said anything; a model of random numbers mostly goes on for ever."""
    ending, text = ended(await ask(app))
    return ending in {"answered", "length"} and bool(text)


def only(local: LocalModels) -> Serving:
    (serving,) = local.serving.values()
    return serving


def requested(
    endpoint: Endpoint, path: str, key: str | None, body: object = None
) -> tuple[int, Any]:
    """Come to the port as anybody on this machine can."""
    address = urlsplit(endpoint.base_url)
    assert address.hostname == "127.0.0.1"
    there = http.client.HTTPConnection(address.hostname, address.port or 0, timeout=20)
    headers = {"Authorization": f"Bearer {key}"} if key is not None else {}
    there.request("POST" if body else "GET", path, json.dumps(body) if body else None, headers)
    answer = there.getresponse()
    said = answer.read()
    there.close()
    return answer.status, json.loads(said) if said else None


def family(pid: int) -> list[int]:
    """A process, and all below it."""
    found = [pid]
    for one in found:
        for children in Path(f"/proc/{one}/task").glob("*/children"):
            with suppress(OSError):
                found += map(int, children.read_text().split())
    return found


def told(pid: int, file: str) -> list[str]:
    """What /proc tells everybody of this user about a process, and all below it."""
    return [Path(f"/proc/{one}/{file}").read_text() for one in family(pid)]


def alive(pids: Iterable[int]) -> list[int]:
    """Who of them is running; one that was not buried yet is not."""
    found: list[int] = []
    for pid in pids:
        with suppress(OSError):
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            found += [pid] if state not in "ZX" else []
    return found


async def test_one_process_serves_a_file_to_all_who_ask(tmp_path: Path) -> None:
    async with housed(tmp_path) as (app, agents, local):
        assert await spoke(app)
        first = only(local)
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(spoke, app)
        assert only(local) is first
        assert first.users == 0
        cards = {card["name"]: card["model"] for card in agents.cards(app.caller)}
        everyone = family(first.pid)

    assert cards["thinker"] == "local/tiny.gguf"
    assert not alive(everyone)


async def test_a_file_may_lie_anywhere_and_only_its_name_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "elsewhere" / "mine.gguf"
    behind = write_model(tmp_path / "blobs" / "0123")
    file.parent.mkdir()
    file.symlink_to(behind)
    async with housed(tmp_path, model=str(file)) as (app, agents, local):
        assert await spoke(app)
        assert list(local.serving) == [file]
        cards = {card["name"]: card["model"] for card in agents.cards(app.caller)}

    assert cards["thinker"] == "local/mine.gguf"


async def test_a_file_can_be_the_nodes_own_model(tmp_path: Path) -> None:
    write_model(tmp_path / "models" / "tiny.gguf")
    put(tmp_path, "thinker", f"[model]\n{FEW}{REACH}")
    config = '[default_model]\nprovider = "local"\nmodel = "tiny.gguf"\n'
    async with thinking(tmp_path, config) as (app, _):
        assert await spoke(app)


async def test_the_port_refuses_everybody_without_the_key(tmp_path: Path) -> None:
    asked = {"model": "x", "max_tokens": 2, "messages": [{"role": "user", "content": "hi"}]}
    async with housed(tmp_path) as (app, _, local):
        await spoke(app)
        endpoint = only(local).endpoint
        assert endpoint
        for path, body in (
            ("/v1/chat/completions", asked),
            ("/completion", {"prompt": "a", "n_predict": 1}),
            ("/v1/models", None),
            ("/health", None),
            ("/props", None),
            ("/", None),
        ):
            for key in (None, "", "wrong", endpoint.key[:-1], f"{endpoint.key}x"):
                status, said = await to_thread.run_sync(requested, endpoint, path, key, body)
                assert (status, said) == (401, None)
        status, said = await to_thread.run_sync(
            requested, endpoint, "/v1/chat/completions", endpoint.key, asked
        )

    assert status == 200
    assert said["usage"]["completion_tokens"] == 2


def statuses(endpoint: Endpoint, *keys: str) -> list[int]:
    """Ask with one key after the other, over one connection."""
    address = urlsplit(endpoint.base_url)
    there = http.client.HTTPConnection(address.hostname or "", address.port or 0, timeout=20)
    found: list[int] = []
    for key in keys:
        there.request("GET", "/v1/models", headers={"Authorization": f"Bearer {key}"})
        answer = there.getresponse()
        answer.read()
        found.append(answer.status)
    there.close()
    return found


async def test_who_was_let_in_needs_the_key_again_with_each_request(tmp_path: Path) -> None:
    async with housed(tmp_path) as (app, _, local):
        await spoke(app)
        endpoint = only(local).endpoint
        assert endpoint
        found = await to_thread.run_sync(statuses, endpoint, endpoint.key, endpoint.key, "wrong")

    assert found == [200, 200, 401]


async def test_the_key_stands_in_no_command_line_no_environment_and_no_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    async with housed(tmp_path) as (app, _, local):
        await spoke(app)
        serving = only(local)
        assert serving.endpoint
        key = serving.endpoint.key
        seen = [*told(serving.pid, "cmdline"), *told(serving.pid, "environ")]
        redacted = app.parts.redactor.text(f"it is {key}").text

    assert len(key) > 40
    assert key not in "".join(seen)
    assert key not in caplog.text
    assert key not in redacted
    assert key not in repr(serving.endpoint)


@pytest.mark.needs("bwrap")
async def test_the_process_has_no_network_of_the_machine_and_sees_its_file_alone(
    tmp_path: Path,
) -> None:
    async with housed(tmp_path) as (app, _, local):
        await spoke(app)
        pid = only(local).pid
        sight = await to_thread.run_sync(look_at, pid)
        inner = family(pid)[-1]
        models_seen = os.listdir(f"/proc/{inner}/root{tmp_path}/models")  # noqa: PTH208
        home_seen = os.listdir(f"/proc/{inner}/root{tmp_path}")  # noqa: PTH208
        devices = told(inner, "net/dev")[0].splitlines()[2:]

    assert sight
    assert {"net", "mnt", "pid", "ipc"} <= sight.own
    assert not sight.capable
    assert models_seen == ["tiny.gguf"]
    assert set(home_seen) == {"models", "children"}
    assert [line.split(":")[0].strip() for line in devices] == ["lo"]


async def test_without_a_sandbox_the_key_and_the_end_hold_all_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with housed(tmp_path) as (app, _, local):
        bare = Confiner(tmp_path, tmp_path, _found=Missing("this test has none"))
        local.confine = bare.program
        assert await spoke(app)
        serving = only(local)
        assert serving.endpoint
        status, _ = await to_thread.run_sync(requested, serving.endpoint, "/v1/models", None)
        everyone = family(serving.pid)

    assert status == 401
    assert "runs without a sandbox" in caplog.text
    assert not alive(everyone)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "The model file tiny.gguf cannot be read."),
        (b"", "tiny.gguf is no GGUF file."),
        (b"PK\3\4 a zip", "tiny.gguf is no GGUF file."),
        (b"GGUF" + bytes(range(256)) * 8, "The model file tiny.gguf cannot be loaded."),
        (b"GGUF\3\0\0\0", "The model file tiny.gguf cannot be loaded."),
    ],
)
async def test_a_file_that_is_no_model_is_a_reason_and_others_do_not_notice(
    tmp_path: Path, content: bytes | None, reason: str
) -> None:
    put(tmp_path, "assistant", ASSISTANT)
    async with housed(tmp_path) as (app, _, _):
        file = tmp_path / "models" / "tiny.gguf"
        file.unlink() if content is None else file.write_bytes(content)
        ending, text = ended(await ask(app))
        other = await app.call("agent:assistant", message="what time is it?")
        write_model(file)
        again = await spoke(app)

    assert ending == "failed"
    assert text.startswith(f"I stopped: {reason} Way out: ")
    assert str(tmp_path) not in text
    assert other.structured
    assert other.structured["ending"] == "answered"
    assert again


async def test_a_file_that_was_cut_off_is_a_reason(tmp_path: Path) -> None:
    async with housed(tmp_path) as (app, _, _):
        file = tmp_path / "models" / "tiny.gguf"
        file.write_bytes(file.read_bytes()[:60_000])
        ending, text = ended(await ask(app))

    assert ending == "failed"
    assert text.startswith("I stopped: The model file tiny.gguf cannot be loaded.")


def test_what_is_no_file_is_a_reason(tmp_path: Path) -> None:
    (tmp_path / "models" / "folder.gguf").mkdir(parents=True)
    os.mkfifo(tmp_path / "models" / "pipe.gguf")
    for name, reason in (
        ("folder.gguf", "folder.gguf is no GGUF file"),
        ("pipe.gguf", "pipe.gguf is no GGUF file"),
        ("none.gguf", "The model file none.gguf cannot be read"),
        ("default", "No model of local is named"),
    ):
        with pytest.raises(ModelFailed, match=reason):
            find_weights(name, tmp_path, window=4096, threads=0)


async def test_without_the_library_the_way_out_is_to_install_it(tmp_path: Path) -> None:
    async with housed(tmp_path) as (app, _, local):
        local.python = str(await to_thread.run_sync(interpreter))
        ending, text = ended(await ask(app))

    assert ending == "failed"
    assert text == (
        "I stopped: A model file needs a library that is not installed. "
        'Way out: pip install "openfang[local-llm]".'
    )


async def test_a_process_that_was_killed_is_started_again(tmp_path: Path) -> None:
    async with housed(tmp_path) as (app, _, local):
        assert await spoke(app)
        first = only(local)
        os.kill(first.pid, signal.SIGKILL)
        with anyio.fail_after(20):
            await first.over.wait()
        assert first.failure
        assert await spoke(app)
        second = only(local)

    assert "SIGKILL" in first.failure.message
    assert second.pid != first.pid


async def test_a_process_that_dies_in_the_middle_says_so(tmp_path: Path) -> None:
    config = "[providers.local]\nretries = 0\n"
    async with housed(tmp_path, config) as (app, _, local):
        assert await spoke(app)
        serving = only(local)
        os.kill(family(serving.pid)[-1], signal.SIGSTOP)
        said: list[tuple[str, str]] = []

        async def asked() -> None:
            said.append(ended(await ask(app)))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked)
            with anyio.fail_after(20):
                while not serving.users:
                    await anyio.lowlevel.checkpoint()
            os.kill(serving.pid, signal.SIGKILL)

    ((ending, text),) = said
    assert ending == "failed"
    assert text.startswith("I stopped: The process of tiny.gguf broke off: ")


async def test_a_process_that_nobody_uses_ends(tmp_path: Path) -> None:
    async with housed(tmp_path) as (app, _, local):
        local.idle = 0.05
        assert await spoke(app)
        first = only(local)
        with anyio.fail_after(20):
            await first.over.wait()
        assert await spoke(app)
        assert only(local) is not first


async def test_a_file_that_changed_is_loaded_anew(tmp_path: Path) -> None:
    async with housed(tmp_path) as (app, _, local):
        assert await spoke(app)
        first = only(local)
        write_model(tmp_path / "models" / "new.gguf", seed=2).replace(first.weights.file)
        assert await spoke(app)
        assert only(local) is not first
        with anyio.fail_after(20):
            await first.over.wait()


async def test_of_many_files_the_one_that_rested_longest_gives_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "MOST", 2)
    names = [f"m{number}.gguf" for number in range(3)]
    find = partial(find_weights, home=tmp_path, window=512, threads=1)
    async with housed(tmp_path) as (_, _, local):
        files = [write_model(tmp_path / "models" / name) for name in names]
        held = [await to_thread.run_sync(find, name) for name in names]
        async with local.held(held[0]) as kept:
            async with local.held(held[1]) as rested:
                with pytest.raises(ModelFailed, match="2 model files are in use"):
                    async with local.held(held[2]):
                        pass
            async with local.held(held[2]):
                assert rested.over.is_set()
                assert not kept.over.is_set()
                assert set(local.serving) - {files[1]} == {files[0], files[2]}


async def test_the_node_says_how_much_a_file_reads_and_how_many_cores_it_gets(
    tmp_path: Path,
) -> None:
    async with housed(tmp_path, "[providers.local]\ncontext_window = 512\nthreads = 3\n") as (
        app,
        _,
        local,
    ):
        text = ended(await ask(app, "word " * 2000))[1]
        serving = only(local)
        assert serving.endpoint
        _, props = await to_thread.run_sync(
            requested, serving.endpoint, "/props", serving.endpoint.key
        )

    assert serving.weights.threads == 3
    assert props["default_generation_settings"]["n_ctx"] == 512
    assert "cannot read so much at once" in text


async def test_each_core_is_a_thread_of_the_process(tmp_path: Path) -> None:
    counted: list[int] = []
    async with housed(tmp_path) as (_, _, local):
        for threads in (1, 9):
            find = partial(find_weights, home=tmp_path, window=512, threads=threads)
            weights = await to_thread.run_sync(find, "tiny.gguf")
            async with local.held(weights) as serving:
                counted.append(len(os.listdir(f"/proc/{family(serving.pid)[-1]}/task")))  # noqa: PTH208

    # Others of its threads come and go meanwhile.
    assert counted[1] - counted[0] >= 6


async def test_a_file_is_shown_no_pictures(tmp_path: Path) -> None:
    async with housed(tmp_path) as (_, agents, local):
        mind = agents.find("thinker").spec.does
        assert isinstance(mind, Mind)
        image = Image(media_type="image/png", data=b"\x89PNG")
        assert await agents.minds.see(mind, image, "what is it?", Meter()) is None
        assert not local.serving


async def test_with_an_address_local_is_a_provider_like_any_other(tmp_path: Path) -> None:
    thinker(tmp_path, provider="local", model="some/model")
    with scripted(Says("from a server")) as server:
        async with thinking(tmp_path, settings(server.openai, provider="local")) as (app, _):
            assert ended(await ask(app)) == ("answered", "from a server")

    assert server.asked[0].body["model"] == "some/model"


@pytest.mark.requirement("C6.6")
@pytest.mark.parametrize(
    "choice",
    [
        '[model]\nprovider = "local"\nmodel = "other.gguf"\n',
        '[model]\nprovider = "local"\nmodel = "/etc/hostname"\n',
        '[model]\nprovider = "default"\nmodel = "other.gguf"\n',
        '[model]\nmodel = "other.gguf"\n',
        '[[fallback_models]]\nprovider = "local"\nmodel = "other.gguf"\n',
        f'{LOCAL}[routing]\nsimple_model = "other.gguf"\n',
    ],
)
async def test_a_spawned_agent_chooses_no_model_file(tmp_path: Path, choice: str) -> None:
    put(tmp_path, "parent", f"{LOCAL}{PARENT}")
    config = '[default_model]\nprovider = "local"\nmodel = "nodes.gguf"\n[providers.local]\n'
    async with thinking(tmp_path, config) as (app, agents):
        said = await spawn(app, parent(agents), "child", choice)
        assert "child" not in agents.running

    assert "A spawned agent chooses no model file" in said


@pytest.mark.requirement("C6.6")
async def test_a_spawned_agent_thinks_with_its_parents_file_while_that_has_it(
    tmp_path: Path,
) -> None:
    put(tmp_path, "parent", f"{LOCAL}{PARENT}")
    async with housed(tmp_path) as (app, agents, local):
        text = f'[model]\nprovider = "local"\n{FEW}'
        assert await spawn(app, parent(agents), "child", text) == "Started child."
        result = await app.call("agent:child", message="hi")
        assert only(local).weights.name == "tiny.gguf"
        put(tmp_path, "parent", f"{LOCAL.replace('tiny', 'other')}{PARENT}")
        await agents.load()
        assert "child" not in agents.running

    assert result.text


def test_a_model_that_was_split_is_shown_with_all_its_parts(tmp_path: Path) -> None:
    names = [f"big-{number:05}-of-00003.gguf" for number in (1, 2, 3)]
    for name in (*names, "other.gguf", "big-00001-of-00002.gguf"):
        (tmp_path / name).touch()
    assert parts(tmp_path / names[0]) == tuple(tmp_path / name for name in names)
    assert parts(tmp_path / "other.gguf") == (tmp_path / "other.gguf",)


def test_the_process_ends_with_its_input(tmp_path: Path) -> None:
    order = {"file": str(tmp_path / "none.gguf"), "key": "k", "listener": 0}
    done = subprocess.run(
        [sys.executable, "-I", inside.__file__],
        input=json.dumps({**order, "window": 512, "threads": 1}).encode() + b"\n",
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert json.loads(done.stdout) == {"say": "broken"}
