"""The seed's A2A client, whose every act takes the one path, and the card of a manifest.

client = A2aClient()
card = await client.discover("https://other-agent.example.com")
task = await client.send_task(card["url"], "Analyze this dataset", "session-123")
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, cast

from openfang.app.a2a.house import public_skills
from openfang.app.calling import Calling
from openfang.compat.a2a_tasks import A2aArtifact, A2aMessage, A2aTask, A2aTaskStatus
from openfang.compat.house import House, current
from openfang.config.home import find_home
from openfang.config.manifests import parse_manifest
from openfang.core.artifacts import artifacts_of
from openfang.core.errors import SourceFailed
from openfang.core.results import text_part
from openfang.core.session import NO_OPTIONS
from openfang.core.tasks import Role
from openfang.core.trace import new_chain
from openfang.edges.a2a.cards import seed_card
from openfang.edges.a2a.ports import Described, Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.config.manifest_models import Manifest
    from openfang.core.results import Result

_EDGE: Final = "python"
_PATH: Final = "/a2a"


class A2aClient:
    """Speaks with agents elsewhere as the caller of a house, else of the one in use.

    What is refused, and what cannot be reached, is raised.
    """

    def __init__(self, house: House | None = None) -> None:
        self._house = house
        self._published: dict[str, str] = {}

    async def discover(self, url: str) -> Mapping[str, Any]:
        """Read the card that is published under an address."""
        card = _structured(await self._call("a2a_discover", {"url": url}))
        self._published[str(card.get("url"))] = url
        return card

    async def send_task(self, url: str, message: str, session_id: str | None = None) -> A2aTask:
        """Send a message, and wait until the task has ended or waits for an answer.

        The address is that of a card, or the one that a card names.
        """
        context = {"context": session_id} if session_id else {}
        sent = {"url": self._base(url), "message": message, **context}
        return _task(await self._call("a2a_send", sent), session_id, message)

    async def get_task(self, url: str, task_id: str) -> A2aTask:
        """Come back to a task, and wait as long."""
        sent = {"url": self._base(url), "message": "", "task": task_id}
        return _task(await self._call("a2a_send", sent), None, "")

    def _base(self, url: str) -> str:
        """Where the card is, if it was read here."""
        return self._published.get(url, url)

    async def _call(self, tool: str, arguments: Mapping[str, Any]) -> Result:
        house = self._house or current()
        calling = Calling(house.parts, house.caller, new_chain(), _EDGE)
        return await house.parts.invoke(calling.make(tool, arguments, NO_OPTIONS))


def _structured(result: Result) -> Mapping[str, Any]:
    told = cast("object", result.structured)
    if not isinstance(told, dict):
        raise SourceFailed(result.text)
    return cast("dict[str, Any]", told)


def _task(result: Result, session_id: str | None, message: str) -> A2aTask:
    told = _structured(result)
    made = [A2aArtifact(one["name"], one["parts"]) for one in artifacts_of(result.content)]
    asked = (A2aMessage(Role.USER.value, (text_part(message),)),) if message else ()
    said = (A2aMessage.of_agent(result.text),) if result.text else ()
    return A2aTask(
        id=told["task"],
        session_id=told["context"] or session_id,
        status=A2aTaskStatus(told["state"]),
        messages=(*asked, *said),
        artifacts=made,
    )


def build_agent_card(manifest: Manifest | str, base_url: str) -> dict[str, Any]:
    """Write the card of an agent, of its manifest or the text of one, in the seed's words."""
    if isinstance(manifest, str):
        manifest = parse_manifest(manifest, find_home(os.environ))
    described = Described(
        name=manifest.name,
        title=manifest.title or manifest.name,
        description=manifest.description,
        version=manifest.version,
        skills=tuple(public_skills(manifest.grants().tools)),
    )
    settings = Settings(base=base_url.rstrip("/"), path=_PATH, merged=True, primary=manifest.name)
    return seed_card(described, settings)
