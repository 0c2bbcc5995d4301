"""Whom an agent asks, with which key: a key goes where it belongs, and nowhere else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import pytest
from anyio import to_thread
from tests.agents.models.minds import KEY, REACH, settings, thinker, thinking
from tests.agents.models.scripted import Fails, Garbage, Hangs, Says, scripted
from tests.agents.models.test_steps import answered, ask, ended
from tests.agents.test_guests import PARENT, parent, spawn
from tests.agents.test_node import put

from openfang.agents.models.failures import ModelFailed, Trouble
from openfang.agents.models.providers import (
    PRESETS,
    Choice,
    Provider,
    endpoint,
    is_planner,
    settled,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.requirement("C6.5")
ROOT = Path(__file__).parents[3]
SECRETS = {"OPENAI_API_KEY": "sk-openai", "MINE": "sk-mine", "OPENFANG_API_KEY": "of-ours"}
GPT = Choice(provider="openai", model="gpt")


def trouble(
    choice: Choice, providers: Mapping[str, Provider] | None = None, **variables: str
) -> tuple[Trouble, str]:
    with pytest.raises(ModelFailed) as failed:
        endpoint(choice, providers or {}, variables)
    return failed.value.trouble, failed.value.way_out


@pytest.mark.parametrize("provider", PRESETS)
def test_every_provider_has_an_address_and_a_key_or_is_local(provider: str) -> None:
    preset = PRESETS[provider]
    variables = dict.fromkeys(preset.keys, "sk")
    found = endpoint(Choice(provider=provider, model="m"), {}, variables)
    assert found.base_url == preset.base_url
    assert found.key == ("sk" if preset.keys else "")
    assert found.allow_private == preset.local
    assert preset.local or preset.api == "library" or preset.base_url.startswith("https://")


def test_a_key_that_is_missing_is_named_with_the_ways_to_set_it() -> None:
    way_out = "set OPENAI_API_KEY, or openfang secrets set OPENAI_API_KEY"
    assert trouble(GPT) == (Trouble.NO_KEY, way_out)
    named = Choice(provider="openai", model="gpt", api_key_env="MINE")
    assert trouble(named) == (Trouble.NO_KEY, "set MINE, or openfang secrets set MINE")


def test_an_address_of_the_manifest_gets_the_key_of_the_manifest_alone() -> None:
    elsewhere = "https://models.example/v1"
    providers = {"openai": Provider(api_key="sk-of-the-node")}
    plain = Choice(provider="openai", model="gpt", base_url=elsewhere)
    named = Choice(provider="openai", model="gpt", base_url=elsewhere, api_key_env="MINE")
    usual = Choice(provider="openai", model="gpt", base_url=PRESETS["openai"].base_url)

    assert endpoint(plain, providers, SECRETS).key == ""
    assert endpoint(named, providers, SECRETS).key == "sk-mine"
    assert endpoint(usual, providers, SECRETS).key == "sk-of-the-node"
    assert endpoint(GPT, {}, SECRETS).key == "sk-openai"


def test_an_address_of_the_node_does_not_get_the_usual_key_of_another() -> None:
    moved = {"openai": Provider(base_url="https://proxy.example/v1")}
    assert endpoint(GPT, moved, SECRETS).key == ""
    keyed = {"openai": Provider(base_url="https://proxy.example/v1", api_key_env="MINE")}
    assert endpoint(GPT, keyed, SECRETS).key == "sk-mine"


def test_what_is_the_nodes_own_goes_to_nobody() -> None:
    stolen = Choice(provider="openai", model="gpt", api_key_env="OPENFANG_API_KEY")
    assert trouble(stolen, None, **SECRETS)[0] is Trouble.NO_KEY


def test_a_key_stands_in_nothing_that_is_printed() -> None:
    found = endpoint(GPT, {"openai": Provider(api_key="sk-node")}, SECRETS)
    assert "sk-node" not in f"{found!r}{Provider(api_key='sk-node')!r}"


def test_nobody_is_asked_whose_address_or_model_is_not_known() -> None:
    assert trouble(Choice(provider="acme", model="m"))[0] is Trouble.ADDRESS
    assert trouble(Choice(provider="ollama"))[0] is Trouble.NO_MODEL


def test_what_is_left_to_the_node_is_the_nodes_choice() -> None:
    node = Choice(provider="openai", model="gpt", base_url="https://a.example", api_key_env="MINE")
    assert settled(Choice(), node) == node
    assert settled(Choice(provider="openai"), node) == GPT
    assert settled(Choice(provider="groq", model="x"), node).provider == "groq"
    assert is_planner(Choice(), Choice(provider="planner"))
    assert not is_planner(Choice(), node)
    assert is_planner(Choice(provider="embedded"), node)


async def test_the_nodes_own_model_is_that_of_agents_that_name_none(tmp_path: Path) -> None:
    put(tmp_path, "thinker", REACH)
    with scripted(Says("hello"), Says("hello")) as server:
        chosen = '[default_model]\nprovider = "house"\nmodel = "m-1"\n'
        config = f"{chosen}{settings(server.openai, provider='house')}"
        async with thinking(tmp_path, config) as (app, agents):
            result = await ask(app)
            cards = {card["name"]: card["model"] for card in agents.cards(app.caller)}

    assert ended(result) == ("answered", "hello")
    assert cards["thinker"] == "house/m-1"
    assert server.asked[0].body["model"] == "m-1"
    assert server.asked[0].headers["Authorization"] == f"Bearer {KEY}"


async def test_the_node_may_name_address_and_key_of_its_model_itself(tmp_path: Path) -> None:
    put(tmp_path, "thinker", REACH)
    with scripted(Says("hello")) as server:
        config = (
            '[default_model]\nprovider = "claude"\nmodel = "m-1"\napi_key_env = "THE_KEY"\n'
            f'base_url = "{server.anthropic}"\n'
            '[providers.claude]\napi = "anthropic"\nallow_private = true\n'
        )
        async with thinking(tmp_path, config) as (app, _):
            assert ended(await ask(app)) == ("answered", "hello")

    assert server.asked[0].headers["X-Api-Key"] == KEY


async def test_a_key_may_lie_in_the_secret_store(tmp_path: Path) -> None:
    thinker(tmp_path, more='api_key_env = "STORED"\n')
    with scripted(Says("hello")) as server:
        async with thinking(tmp_path, settings(server.openai)) as (app, _):
            await to_thread.run_sync(app.parts.secrets.set, "STORED", "sk-from-the-store")
            assert ended(await ask(app)) == ("answered", "hello")

    assert server.asked[0].headers["Authorization"] == "Bearer sk-from-the-store"


async def test_an_agent_without_a_key_says_what_to_set(tmp_path: Path) -> None:
    thinker(tmp_path)
    async with thinking(tmp_path, "") as (app, _):
        ending, text = ended(await ask(app))

    assert ending == "failed"
    assert text == (
        "I stopped: openai needs a key, and OPENAI_API_KEY is not set. "
        "Way out: set OPENAI_API_KEY, or openfang secrets set OPENAI_API_KEY."
    )


@pytest.mark.parametrize("url", ["http://127.0.0.1:{}/v1", "http://localhost:{}/v1"])
async def test_an_address_of_this_machine_is_reached_only_if_the_node_says_so(
    tmp_path: Path, url: str
) -> None:
    with scripted(Says("never")) as server:
        address = url.format(server.port)
        thinker(tmp_path, more=f'base_url = "{address}"\n')
        async with thinking(tmp_path, "") as (app, _):
            ending, text = ended(await ask(app))

    assert (ending, server.asked) == ("failed", [])
    assert text.startswith("I stopped: openai may not be reached:")
    assert text.endswith("Way out: [providers.openai] allow_private, if that is meant.")


async def test_an_address_that_nothing_opens_has_another_way_out(tmp_path: Path) -> None:
    with scripted(Says("never")) as server:
        address = f"http://user:hunter2-hunter2@127.0.0.1:{server.port}/v1"
        thinker(tmp_path, more=f'base_url = "{address}"\n')
        async with thinking(tmp_path, "") as (app, _):
            ending, text = ended(await ask(app))

    assert (ending, server.asked) == ("failed", [])
    assert "hunter2" not in text
    assert text.endswith("Way out: send credentials in a header.")


async def test_an_address_of_the_manifest_is_reached_with_the_manifests_key(tmp_path: Path) -> None:
    with scripted(Says("hello"), Says("again")) as server:
        named = f'base_url = "{server.openai}"\n'
        config = '[providers.openai]\nallow_private = true\napi_key = "sk-node"\n'
        thinker(tmp_path, more=f'{named}api_key_env = "THE_KEY"\n')
        async with thinking(tmp_path, config) as (app, agents):
            assert ended(await ask(app)) == ("answered", "hello")
            thinker(tmp_path, more=named)
            await agents.load()
            assert ended(await ask(app)) == ("answered", "again")

    assert server.asked[0].headers["Authorization"] == f"Bearer {KEY}"
    assert "Authorization" not in server.asked[1].headers


async def test_a_redirect_takes_neither_key_nor_conversation_along(tmp_path: Path) -> None:
    with scripted(Says("never")) as other, scripted() as server:
        moved = f"{other.openai}/chat/completions"
        server.answers = [Garbage(b"", status=307, location=moved)]
        thinker(tmp_path)
        async with thinking(tmp_path, settings(server.openai)) as (app, _):
            ending, _ = ended(await ask(app))

    assert (ending, other.asked) == ("failed", [])


async def test_the_next_model_answers_when_the_one_before_cannot(tmp_path: Path) -> None:
    with scripted(Fails(404, "gone", code="model_not_found"), Says("I can")) as server:
        stand_in = '\n[[fallback_models]]\nprovider = "openai"\nmodel = "gpt-4o"\n'
        no_key = '\n[[fallback_models]]\nprovider = "groq"\nmodel = "llama"\n'
        thinker(tmp_path, more=no_key + stand_in)
        async with thinking(tmp_path, settings(server.openai)) as (app, _):
            result = await ask(app)

    assert ended(result) == ("answered", "I can")
    assert [one.body["model"] for one in server.asked] == ["gpt-4o-mini", "gpt-4o"]


async def test_all_models_that_cannot_answer_are_named(tmp_path: Path) -> None:
    with scripted(Fails(401, "no"), Fails(404, "gone")) as server:
        stand_in = '\n[[fallback_models]]\nprovider = "openai"\nmodel = "gpt-4o"\n'
        thinker(tmp_path, more=stand_in)
        async with thinking(tmp_path, settings(server.openai)) as (app, _):
            ending, text = ended(await ask(app))

    assert ending == "failed"
    assert "openai refused the key. openai knows no such model: gpt-4o." in text


async def test_a_fallback_has_address_and_key_of_its_own(tmp_path: Path) -> None:
    with scripted(Fails(400, "no")) as first, scripted(Says("mine")) as second:
        stand_in = (
            f'\n[[fallback_models]]\nprovider = "other"\nmodel = "m"\n'
            f'base_url = "{second.openai}"\napi_key_env = "MINE"\n'
        )
        thinker(tmp_path, more=stand_in)
        config = f"{settings(first.openai)}[providers.other]\nallow_private = true\n"
        async with thinking(tmp_path, config, MINE="sk-mine") as (app, _):
            assert ended(await ask(app)) == ("answered", "mine")

    assert second.asked[0].headers["Authorization"] == "Bearer sk-mine"


async def test_the_length_of_what_is_asked_chooses_the_model(tmp_path: Path) -> None:
    routing = (
        '\n[routing]\nsimple_model = "small"\ncomplex_model = "large"\n'
        "simple_threshold = 5\ncomplex_threshold = 50\n"
    )
    thinker(tmp_path, more=routing)
    with scripted(*[Says("ok")] * 3) as server:
        async with thinking(tmp_path, settings(server.openai)) as (app, _):
            for message in ("hi", "word " * 20, "word " * 200):
                await ask(app, message, session=str(len(message)))

    assert [one.body["model"] for one in server.asked] == ["small", "gpt-4o-mini", "large"]


async def test_a_provider_is_asked_no_more_often_than_the_node_says(tmp_path: Path) -> None:
    put(tmp_path, "thinker", '[model]\nprovider = "openai"\nmodel = "m"\n')
    config = "requests_per_minute = 60"
    with scripted(*[Says("ok")] * 62) as server:
        async with thinking(tmp_path, settings(server.openai, more=config)) as (app, agents):
            pace = agents.minds._pace
            for _ in range(60):
                await pace("openai")
            before = app.parts.clock.monotonic()
            await ask(app)
            after = app.parts.clock.monotonic()

    assert len(server.asked) == 1
    assert after - before > 0.5


async def test_time_is_up_for_a_model_that_hangs(tmp_path: Path) -> None:
    until = Event()
    more = "\n[limits]\nmodel_timeout_secs = 1\n"
    thinker(tmp_path, more=more)
    with scripted(Hangs(until)) as server:
        async with thinking(tmp_path, settings(server.openai)) as (app, agents):
            await agents.minds._opened()
            ending, text = ended(await ask(app))
            until.set()

    assert ending == "failed"
    assert "openai/gpt-4o-mini did not answer within 1 s" in text


@pytest.mark.requirement("C6.6")
@pytest.mark.parametrize(
    "choice",
    [
        'provider = "openai"\nmodel = "m"\nbase_url = "https://evil.example/v1"',
        'provider = "openai"\nmodel = "m"\napi_key_env = "OTHER_SECRET"',
        'provider = "groq"\nmodel = "m"',
        'provider = "default"\nmodel = "m"\nbase_url = "https://evil.example/v1"',
    ],
)
async def test_a_spawned_agent_chooses_no_address_and_no_key(tmp_path: Path, choice: str) -> None:
    put(tmp_path, "parent", PARENT)
    async with thinking(tmp_path, settings("https://models.example/v1")) as (app, agents):
        said = await spawn(app, parent(agents), "child", f"[model]\n{choice}\n")
        fallback = f"[[fallback_models]]\n{choice}\n"
        too = await spawn(app, parent(agents), "child", fallback)

    assert "child" not in agents.running
    for one in (said, too):
        assert "chooses no address and no key" in one or "has the provider groq" in one


@pytest.mark.requirement("C6.6")
async def test_a_spawned_agent_thinks_with_what_its_parent_thinks_with(tmp_path: Path) -> None:
    with scripted(Says("from the child")) as server:
        own = (
            '[model]\nprovider = "acme"\nmodel = "m"\napi_key_env = "THE_KEY"\n'
            f'base_url = "{server.openai}"\n'
        )
        put(tmp_path, "parent", f"{own}{PARENT}")
        config = "[providers.acme]\nallow_private = true\n"
        async with thinking(tmp_path, config) as (app, agents):
            said = await spawn(app, parent(agents), "child", '[model]\nprovider = "acme"\n')
            result = await app.call("agent:child", message="hi")
            assert "child" in agents.running
            put(tmp_path, "parent", f"{own.replace('THE_KEY', 'ANOTHER')}{PARENT}")
            await agents.load()
            assert "child" not in agents.running

    assert said == "Started child."
    assert result.text == "from the child"
    assert server.asked[0].headers["Authorization"] == f"Bearer {KEY}"


async def test_the_library_is_imported_when_a_real_model_is_asked(tmp_path: Path) -> None:
    done = subprocess.run(  # noqa: ASYNC221 - a test may wait
        [sys.executable, "-m", "tests.agents.models.imports", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=100,
        check=False,
    )
    assert done.stdout.split() == ["False", "True"], done.stderr


async def test_without_the_library_the_way_to_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    monkeypatch.delitem(sys.modules, "openfang.agents.models.adapter", raising=False)
    _, result = await answered(tmp_path, Says("never"))
    assert ended(result)[1].endswith('Way out: pip install "openfang[agents]".')


async def test_a_provider_whose_package_is_missing_names_it(tmp_path: Path) -> None:
    thinker(tmp_path, provider="bedrock", model="anthropic.claude")
    async with thinking(tmp_path, "") as (app, _):
        _, text = ended(await ask(app))
    assert text.endswith('Way out: pip install "pydantic-ai-slim[bedrock]".')
