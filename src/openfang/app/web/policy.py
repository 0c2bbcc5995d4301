"""The operator's rules as a page shows them, and a draft held against the newest calls."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from anyio import to_thread

from openfang.app.rules.replay import Replay
from openfang.config.fields import Folders
from openfang.config.home import user_home
from openfang.config.rulebook import read_rules
from openfang.core.bookmarks import Bookmark
from openfang.core.errors import ConfigError
from openfang.core.events import AuditEvent
from openfang.storage.chains import heads
from openfang.storage.log import rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.app.parts import Parts
    from openfang.config.rules import Rules
    from openfang.storage.ports import Reader

MOST_RECORDS: Final = 10_000
_SHOWN: Final = 50


def rules_body(parts: Parts) -> list[dict[str, Any]]:
    """Show the rules in force, in their order, each with what narrows it."""
    return [
        one.model_dump(mode="json", exclude_defaults=True)
        | {"enabled": one.enabled, "shadow": one.shadow or parts.config.rules.shadow}
        for one in parts.config.rules.file.rules
    ]


async def replay(parts: Parts, draft: str, environ: Mapping[str, str]) -> dict[str, Any]:
    """Hold the newest calls against a draft: what would be decided otherwise."""
    rules = await to_thread.run_sync(_read, parts, draft, environ)
    tools = {tool.id: tool for tool in parts.registry.snapshot.select()}
    return await parts.database.aside(partial(_held_against, Replay(rules.compiled, tools, _SHOWN)))


async def _held_against(found: Replay, reader: Reader) -> dict[str, Any]:
    ends = (await heads(reader)).places
    share = MOST_RECORDS // max(1, len(ends))
    first = Bookmark({node: max(0, end - share) for node, end in ends.items()})
    async with aclosing(rows(reader, after=first)) as newest:
        async for row in newest:
            found.read(AuditEvent.of(row))
    found.end()
    return found.as_json()


def _read(parts: Parts, draft: str, environ: Mapping[str, str]) -> Rules:
    folders = Folders(home=parts.home.path, user=user_home(environ))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "draft.toml"
        path.write_text(draft)
        match read_rules(path, "draft", folders):
            case list() as problems:
                raise ConfigError("\n".join(_told(problems)), way_out="mend the draft")
            case found:
                return found


def _told(problems: Sequence[object]) -> list[str]:
    return [str(one) for one in problems]
