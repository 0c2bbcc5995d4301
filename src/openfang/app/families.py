"""The built-in tools of a node: each family with what it works on."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from openfang.app.a2a.people import check_reached
from openfang.app.clients import client_known
from openfang.app.schedules.family import Family
from openfang.app.variables import expanded
from openfang.core.errors import HomeError
from openfang.core.ids import Kind
from openfang.policy.globs import matches
from openfang.sources.a2a.errand import Around
from openfang.sources.a2a.ledger import Ledger
from openfang.sources.builtin.a2a import A2aLimits, a2a_tools
from openfang.sources.builtin.agents import agent_tools
from openfang.sources.builtin.board import BoardSettings, board_tools
from openfang.sources.builtin.carried import Carried
from openfang.sources.builtin.clock import clock_tools
from openfang.sources.builtin.events import event_tools
from openfang.sources.builtin.files import file_tools
from openfang.sources.builtin.images import ImageLimits, image_tools
from openfang.sources.builtin.memory import memory_tools
from openfang.sources.builtin.places import Service, place_tools
from openfang.sources.builtin.schedules import schedule_tools
from openfang.sources.builtin.search import Searching, search_tools
from openfang.sources.builtin.shell import ShellLimits, shell_tools
from openfang.sources.builtin.source import BuiltinSource
from openfang.sources.builtin.web import WebLimits, web_tools
from openfang.storage.board import BoardStore
from openfang.storage.files import FileLabelStore
from openfang.storage.peers import PeerStore

if TYPE_CHECKING:
    from openfang.app.parts import Parts
    from openfang.config.models import Config
    from openfang.config.tools import Image, Location
    from openfang.core.calls import Call, Caller
    from openfang.core.tools import Tool
    from openfang.sources.builtin.agents import Directory


def around_peers(parts: Parts) -> Around:
    """Put together what calls of agents elsewhere are handed."""
    ledger = Ledger(
        store=PeerStore(parts.database),
        writer=parts.writer,
        key=parts.master.derive("a2a-contexts"),
        now=parts.clock.time_ns,
    )
    return Around(
        check=parts.pipeline.stamper.check,
        invoke=parts.invoke,
        known=partial(client_known, parts),
        clean=parts.redactor.tree,
        hops=parts.hops,
        ledger=ledger,
    )


def builtins_of(parts: Parts) -> BuiltinSource:
    """Put the families of built-in tools together, as they are configured now."""
    tools = parts.config.tools

    def workspace(space: str) -> Path:
        return parts.agents.workspace(space) if parts.agents else parts.home.workspace(space)

    def memory(call: Call) -> str:
        return parts.agents.memory(call) if parts.agents else call.caller.space

    async def directory() -> Directory:
        if parts.agents is None:
            raise HomeError("The home is not open for calls.", way_out="openfang start")
        return await parts.agents.opened()

    async def reaches(caller: Caller, agent: str) -> bool:
        return any(one["name"] == agent for one in (await directory()).known(caller))

    async def settled(caller: Caller, name: str) -> None:
        if parts.peers is not None:
            await parts.peers.settled(name)
        check_reached(parts, caller, name)

    async def see(call: Call, image: bytes, media_type: str, question: str) -> str | None:
        agents = parts.agents
        return await agents.see(call, image, media_type, question) if agents else None

    elsewhere = A2aLimits(
        enabled=parts.config.a2a.enabled,
        allow_private=tools.web_fetch.allow_private,
        opens=parts.hops.opens,
    )
    web = WebLimits(
        allow_private=tools.web_fetch.allow_private,
        timeout=tools.web_fetch.timeout_secs,
        max_bytes=tools.web_fetch.max_bytes,
    )
    shell = ShellLimits(
        programs=frozenset(tools.shell_exec.programs),
        allow_shell=tools.shell_exec.allow_shell,
        timeout=tools.shell_exec.timeout_secs,
        variables=tools.shell_exec.env,
        sandbox=tools.shell_exec.sandbox,
        network=tools.shell_exec.network,
        read=tuple(map(Path, tools.shell_exec.fs_read)),
        write=tuple(map(Path, tools.shell_exec.fs_write)),
    )
    board = BoardSettings(
        claim_secs=tools.tasks.claim_secs, reaches=reaches, now=parts.clock.time_ns
    )
    carried = Carried(FileLabelStore(parts.database), parts.writer, parts.home.path)
    families = (
        clock_tools(parts.clock.time_ns),
        file_tools(workspace, tools.files.max_bytes, carried),
        memory_tools(parts.database, parts.writer, memory),
        shell_tools(workspace, shell, carried, parts.confined),
        web_tools(web),
        search_tools(_searching(parts), parts.clock.monotonic),
        image_tools(workspace, _image_limits(tools.image), see),
        place_tools(tools.location.place, _service(tools.location)),
        agent_tools(directory, parts.invoke),
        board_tools(BoardStore(parts.database), parts.writer, board),
        schedule_tools(Family(parts, parts.schedules)),
        event_tools(parts.events),
        a2a_tools(elsewhere, around_peers(parts), settled),
    )
    return BuiltinSource(families, parts.pipeline.stamper.check)


def _searching(parts: Parts) -> Searching:
    settings = parts.config.tools.web_search
    return Searching(
        provider=settings.provider,
        base_url=settings.base_url,
        key=settings.api_key.get_secret_value() if settings.api_key else "",
        expand=lambda key: expanded(parts, "tools.web_search", {"key": key})["key"],
        allow_private=settings.allow_private,
        timeout=settings.timeout_secs,
        keep=settings.cache_secs,
    )


def _image_limits(settings: Image) -> ImageLimits:
    return ImageLimits(max_bytes=settings.max_bytes, max_pixels=settings.max_pixels)


def _service(settings: Location) -> Service | None:
    if settings.service is None:
        return None
    return Service(
        url=settings.service,
        allow_private=settings.allow_private,
        timeout=settings.timeout_secs,
    )


def switched_off(config: Config, tool: Tool) -> bool:
    """Whether the operator switched it off: by its id, or by the plain name of a built-in."""
    off = config.tools.disabled
    return matches(off, tool.id) or (tool.kind is Kind.BUILTIN and matches(off, tool.name))
