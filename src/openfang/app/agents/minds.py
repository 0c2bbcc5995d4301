"""What the agents of a node think with: the planner, or a provider's model with its stand-ins."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
from anyio import to_thread

from openfang.agents.local.model import LocalModel
from openfang.agents.local.weights import find_weights
from openfang.agents.meter import Metered
from openfang.agents.models.failures import ModelFailed, Trouble
from openfang.agents.models.fallback import Fallback
from openfang.agents.models.patient import Patient
from openfang.agents.models.providers import (
    LOCAL,
    Choice,
    Endpoint,
    is_file,
    is_planner,
    settled,
    shown,
)
from openfang.agents.models.reading import Reading
from openfang.agents.models.remote import Remote
from openfang.agents.models.routed import NO_ROUTES, Routed, Routes
from openfang.agents.spec import Mind
from openfang.app.agents.reached import Variables, chosen, reached, said_of
from openfang.config.home import user_home
from openfang.core.agents import Image, Message, Prompt, Speaker, Words
from openfang.core.errors import SourceFailed
from openfang.core.values import dataclass
from openfang.guard.rate import Limited, Quota

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from pathlib import Path

    from anyio.abc import TaskGroup

    from openfang.agents.local.models import LocalModels
    from openfang.agents.local.serving import Serving
    from openfang.agents.meter import Meter
    from openfang.agents.models.adapter import Library
    from openfang.app.parts import Parts
    from openfang.config.llm import ModelProvider
    from openfang.config.manifest_models import Manifest
    from openfang.config.manifest_parts import Routing
    from openfang.config.models import Config
    from openfang.core.agents import Model

_log = logging.getLogger("openfang.agents")
_EXTRA: Final = 'pip install "openfang[agents]"'


@dataclass(slots=True)
class Minds:
    """Finds the model of each agent. Those of providers answer while `run` runs."""

    parts: Parts
    environ: Mapping[str, str]
    _library: Library | None = None
    _local: LocalModels | None = None
    _tasks: TaskGroup | None = None
    _failure: ModelFailed | None = None
    _wanted: anyio.Event = field(default_factory=anyio.Event)
    _there: anyio.Event = field(default_factory=anyio.Event)

    async def run(self) -> None:
        """Wait until a provider is wanted, and keep the connections until the node ends."""
        await self._wanted.wait()
        try:
            http, library = await to_thread.run_sync(_imported)
        except ImportError as error:
            _log.warning("The library of models cannot be used: %s", error)
            self._failure = ModelFailed(
                "This agent needs a library that is not installed.",
                trouble=Trouble.MISSING,
                way_out=_EXTRA,
            )
            self._there.set()
            return
        async with http() as client, anyio.create_task_group() as self._tasks:
            self._library = library(client)
            self._there.set()
            await anyio.sleep_forever()

    @property
    def default(self) -> Choice:
        """The node's own choice."""
        return default_choice(self.parts.config)

    def model(self, mind: Mind) -> Model:
        """Give what an agent thinks with, and what stands in for it."""
        own = (
            self._routed(mind) if mind.routes != NO_ROUTES else self._one(mind.choice, mind.seconds)
        )
        others = [self._one(choice, mind.seconds) for choice in mind.fallbacks]
        return Fallback([own, *others]) if others else own

    def may_see(self, mind: Mind) -> bool:
        """Whether pictures are of any use to it: the planner reads words."""
        return not is_planner(mind.choice, self.default)

    async def see(self, mind: Mind, image: Image, question: str, meter: Meter) -> str | None:
        """Ask a model about a picture; None if it is not one that can be shown any."""
        try:
            return await self._seen(mind, image, question, meter)
        except ModelFailed as failure:
            _log.warning("A picture was not seen: %s", failure.detail or failure.message)
            raise SourceFailed(failure.message, way_out=failure.way_out) from failure

    async def _seen(self, mind: Mind, image: Image, question: str, meter: Meter) -> str | None:
        if not await self._asked(settled(mind.choice, self.default)).sees():
            return None
        asked = Message(speaker=Speaker.USER, text=question, images=(image,))
        prompt = Prompt(messages=(asked,), max_tokens=mind.max_tokens, temperature=mind.temperature)
        model = Metered(self._one(mind.choice, mind.seconds), meter)
        said = [one async for one in model.answer(prompt)]
        return "".join(one.text for one in said if isinstance(one, Words))

    def _routed(self, mind: Mind) -> Model:
        def model(name: str) -> Model:
            choice = replace(mind.choice, model=name) if name else mind.choice
            return self._one(choice, mind.seconds)

        return Routed(mind.routes, model)

    def _one(self, choice: Choice, seconds: float) -> Model:
        if is_planner(choice, self.default):
            from openfang.agents.planner.model import PlannerModel  # noqa: PLC0415 - not before a message

            return PlannerModel()
        wanted = settled(choice, self.default)
        retries = self._said(wanted.provider).retries
        read = Reading(self._asked(wanted))
        return Patient(model=read, retries=retries, seconds=seconds)

    def _asked(self, choice: Choice) -> Remote | LocalModel:
        return self._file(choice) if needs_file(choice, self.parts.config) else self._remote(choice)

    def _file(self, choice: Choice) -> LocalModel:
        return LocalModel(
            name=shown(choice),
            held=partial(self._held, choice),
            library=self._opened,
            pace=partial(self._pace, choice.provider),
            learn=self._learn,
        )

    @asynccontextmanager
    async def _held(self, choice: Choice) -> AsyncGenerator[Serving]:
        """Hold the process of a model file."""
        said, home = self._said(choice.provider), self.parts.home.path
        find = partial(find_weights, window=said.context_window, threads=said.threads)
        weights = await to_thread.run_sync(find, choice.model, home)
        async with (await self._files()).held(weights) as serving:
            yield serving

    async def _files(self) -> LocalModels:
        await self._opened()
        if self._local is None:
            opened = await to_thread.run_sync(_local_models, self.parts.home.path, self.environ)
            assert self._tasks is not None  # noqa: S101 - it is there with the library
            self._local = self._local or opened(tasks=self._tasks)
        return self._local

    def _remote(self, choice: Choice) -> Remote:
        return Remote(
            name=shown(choice),
            find=partial(self._found, choice),
            library=self._opened,
            pace=partial(self._pace, choice.provider),
        )

    async def _opened(self) -> Library:
        self._wanted.set()
        await self._there.wait()
        if self._library is None:
            assert self._failure is not None  # noqa: S101 - one of the two is there
            raise self._failure
        return self._library

    def _found(self, choice: Choice) -> Endpoint:
        """Say how a model is reached, now. Blocks: secrets are files."""
        variables = Variables(self.environ, self.parts.secrets)
        found = reached(choice, self._said(choice.provider), variables)
        self._learn(found)
        return found

    def _learn(self, found: Endpoint) -> None:
        """Keep a key out of what is logged and said. Blocks."""
        if found.key:
            owner = f"model:{found.provider}:{found.key_name or found.model}"
            self.parts.redactor.learn([found.key], owner)

    def _said(self, provider: str) -> ModelProvider:
        return said_of(self.parts.config, provider)

    async def _pace(self, provider: str) -> None:
        """Wait for one's turn, where the node bounds how often a provider is asked."""
        most = self._said(provider).requests_per_minute
        if not most:
            return
        quota = Quota(cells_per_minute=most, burst=most)
        while True:
            now = self.parts.clock.monotonic()
            charge = self.parts.paces.charge(provider, 1, quota, now)
            if not isinstance(charge, Limited):
                return
            await anyio.sleep(charge.retry_after or quota.interval)


def default_choice(config: Config) -> Choice:
    """The model that the configuration names."""
    return chosen(config.default_model)


def files_of(does: object, config: Config) -> set[str]:
    """Name the model files that an agent would have loaded, as its manifest names them."""
    if not isinstance(does, Mind):
        return set()
    default = default_choice(config)
    own = settled(does.choice, default)
    routes = (does.routes.simple, does.routes.medium, does.routes.long)
    others = (settled(one, default) for one in does.fallbacks)
    every = (own, *others, *(replace(own, model=name) for name in routes if name))
    return {one.model for one in every if needs_file(one, config)}


def needs_file(choice: Choice, config: Config) -> bool:
    """Whether a model is a file of the operator's."""
    said = config.providers.get(LOCAL)
    return is_file(choice, said.base_url if said else None)


def mind_of(manifest: Manifest) -> Mind:
    """Read from a manifest what its agent thinks with."""
    model = manifest.model
    return Mind(
        choice=chosen(model),
        fallbacks=tuple(map(chosen, manifest.fallback_models)),
        routes=_routes(manifest.routing),
        seconds=manifest.limits.model_timeout_secs,
        system=model.system_prompt,
        max_tokens=model.max_tokens,
        temperature=model.temperature,
        window=model.context_window,
        handles=model.untrusted == "handles",
    )


def _routes(routing: Routing | None) -> Routes:
    if routing is None:
        return NO_ROUTES
    return Routes(
        simple=routing.simple_model or "",
        medium=routing.medium_model or "",
        long=routing.complex_model or "",
        short_below=routing.simple_threshold,
        long_from=routing.complex_threshold,
    )


def _local_models(home: Path, environ: Mapping[str, str]) -> Callable[..., LocalModels]:
    # Sandbox and processes take a while to import, and few nodes serve models.
    from openfang.agents.local.models import LocalModels  # noqa: PLC0415 - as above
    from openfang.app.confine import Confiner  # noqa: PLC0415 - as above

    confiner = Confiner(home, user_home(environ))
    return partial(LocalModels, confine=confiner.program, home=home)


def _imported() -> tuple[type, type[Library]]:
    """Import what speaks with providers: seconds, beside the loop."""
    from openfang.agents.models.adapter import Library  # noqa: PLC0415 - as above
    from openfang.host.http import HttpClient  # noqa: PLC0415 - as above

    return HttpClient, Library
