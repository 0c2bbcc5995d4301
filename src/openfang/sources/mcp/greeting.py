"""How two parties agree on a revision: ask for `server/discover`, and if that fails, `initialize`.

Any error to the first question means an older server. A server that was too slow to answer it, and
then refuses `initialize`, is asked once more: it may have been starting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, cast

import anyio

from openfang.core.values import dataclass
from openfang.protocols.mcp.errors import METHOD_NOT_FOUND, RpcError
from openfang.protocols.mcp.meta import SERVER_INFO, ClientInfo, Introduction, meta_of, with_meta
from openfang.protocols.mcp.versions import (
    HANDSHAKE,
    MODERN,
    NEWEST,
    NEWEST_HANDSHAKE,
    OLDEST,
    choose,
    is_modern,
)
from openfang.sources.mcp.transport import AuthNeeded, Lost, NotSpoken, ProbeFatal, Transport

Era: TypeAlias = Literal["modern", "handshake"]
PROBE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    """What was agreed on, and what the server said of itself."""

    introduction: Introduction
    answer: Mapping[str, Any]

    @property
    def version(self) -> str:
        """The revision."""
        return self.introduction.version

    @property
    def era(self) -> Era:
        """Whether requests stand alone, or follow a handshake."""
        return "modern" if is_modern(self.version) else "handshake"

    @property
    def server_info(self) -> Mapping[str, Any]:
        """Name and version, by its own account."""
        return _mapping(meta_of(self.answer).get(SERVER_INFO) or self.answer.get("serverInfo"))

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What it says it can do."""
        return _mapping(self.answer.get("capabilities"))

    @property
    def instructions(self) -> str:
        """How it wants to be used."""
        text = self.answer.get("instructions")
        return text if isinstance(text, str) else ""


@dataclass(frozen=True, slots=True)
class Declared:
    """What we can be asked: by requests that stand alone, and by who shook hands, if that differs.

    A request that stands alone may say more for itself.
    """

    alone: Mapping[str, Any]
    handshake: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Greeter:
    """Who greets, over what."""

    transport: Transport
    client: ClientInfo
    declared: Declared

    async def greet(self, *, known: Era | None = None) -> Greeting:
        """Agree on a revision. A server that is known to be older is not asked whether it is."""
        if known != "handshake" and (found := await self._discover()):
            return found
        try:
            return await self._shake_hands()
        except RpcError as refusal:
            if known != "handshake" and (found := await self._discover()):
                return found
            raise NotSpoken(f"The server refuses to initialize: {refusal}") from refusal

    async def _discover(self) -> Greeting | None:
        try:
            with anyio.fail_after(PROBE_SECONDS):
                return await self._ask_versions(NEWEST)
        except (RpcError, TimeoutError, NotSpoken):
            return None
        except AuthNeeded:
            raise
        except Lost as lost:
            if self.transport.heeded:
                raise ProbeFatal(lost.reason) from lost
            raise

    async def _ask_versions(self, version: str) -> Greeting | None:
        try:
            answer = await self._ask_modern(version)
        except RpcError as error:
            other = choose(_supported(error), MODERN)
            if not other:
                raise
            answer = await self._ask_modern(other)
        agreed = choose(answer.get("supportedVersions"), MODERN)
        if not agreed:
            return None
        self.transport.speak(agreed)
        return Greeting(introduction=self._introduction(agreed), answer=answer)

    async def _ask_modern(self, version: str) -> dict[str, Any]:
        self.transport.speak(version)
        params = with_meta({}, self._introduction(version).fields())
        return await self.transport.request("server/discover", params)

    async def _shake_hands(self) -> Greeting:
        self.transport.speak("")
        try:
            answer = await self._initialize(NEWEST_HANDSHAKE)
        except RpcError as error:
            if self.transport.kind == "plain" and error.code == METHOD_NOT_FOUND:
                return Greeting(introduction=self._introduction(OLDEST), answer={})
            other = choose(_supported(error), HANDSHAKE)
            if not other:
                raise
            answer = await self._initialize(other)
        version = answer.get("protocolVersion", OLDEST)
        if version not in HANDSHAKE:
            raise Lost(f"The server speaks {str(version)[:100]!r}, which is no revision known here")
        self.transport.speak(version)
        await self.transport.notify("notifications/initialized")
        return Greeting(introduction=self._introduction(version), answer=answer)

    async def _initialize(self, version: str) -> dict[str, Any]:
        declared = self.declared
        params = {
            "protocolVersion": version,
            "capabilities": declared.alone if declared.handshake is None else declared.handshake,
            "clientInfo": self.client.fields(),
        }
        return await self.transport.request("initialize", params)

    def _introduction(self, version: str) -> Introduction:
        return Introduction(version=version, client=self.client, capabilities=self.declared.alone)


def _supported(error: RpcError) -> object:
    """What a server that refuses a revision offers in its place."""
    return _mapping(error.data).get("supported")


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
