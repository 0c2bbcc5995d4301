"""What a backup says about itself: `backup.json`, the last member of its archive."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Self, cast

from openfang.core.errors import HomeError
from openfang.core.values import dataclass
from openfang.host.unpack import ArchiveRefused

if TYPE_CHECKING:
    from collections.abc import Mapping

MANIFEST = "backup.json"
FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The node, the end of its chain, and the digest of every other member."""

    version: str
    schema: int
    node: str
    created_at: str
    seq: int
    hash: str
    database: str
    members: Mapping[str, str]

    def text(self) -> bytes:
        """Write it; names that are not text come out as they went in."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1).encode()

    @classmethod
    def read(cls, text: bytes) -> Self:
        """Read it, or say why it is none of ours."""
        try:
            body = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise _foreign() from error
        if not isinstance(body, dict):
            raise _foreign()
        return cls._of(cast("dict[str, Any]", body))

    @classmethod
    def _of(cls, body: dict[str, Any]) -> Self:
        number = body.pop("format", None)
        if type(number) is not int or number < 1:
            raise _foreign()
        if number > FORMAT:
            raise HomeError(
                f"The backup was made by a newer version (format {number}, this one knows "
                f"{FORMAT}).",
                way_out="upgrade openfang",
            )
        kinds = dict.fromkeys(cls.__slots__, str) | {"schema": int, "seq": int, "members": dict}
        if {name: type(value) for name, value in body.items()} != kinds:
            raise _foreign()
        if any(type(digest) is not str for digest in body["members"].values()):
            raise _foreign()
        return cls(**body)


def _foreign() -> ArchiveRefused:
    return ArchiveRefused(f"The archive has no {MANIFEST} as a backup has it.")
