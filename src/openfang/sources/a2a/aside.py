"""Data and metadata of a peer's answers, laid aside while the library reads them. No I/O."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from openfang.core.errors import SourceFailed
from openfang.protocols.a2a.aside import Aside as Laid
from openfang.safety.sizes import is_within

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMES: Final = (b'"data"', b'"metadata"')
_LINE_END: Final = re.compile(rb"\r\n|\r|\n")
_DATA: Final = b"data"
_DEEPEST: Final = 100


class Aside(Laid):
    """What was laid aside of one message to a peer, and of what it answered."""

    __slots__ = ()

    def heard(self, text: bytes) -> bytes:
        """Take it out of a body as a whole, or of whole events of a stream."""
        if not any(name in text for name in _NAMES):
            return text
        lean = self._lean(text)
        return b"\n".join(self._events(text)) if lean is None else lean

    def _lean(self, text: bytes) -> bytes | None:
        """Write it in ASCII: the library ends a line of an event at more than the ends of lines."""
        try:
            said: object = orjson.loads(text)
        except ValueError:
            return None
        if not isinstance(said, dict):
            return None
        fields = cast("dict[str, Any]", said)
        if not is_within(fields, levels=_DEEPEST, values=sys.maxsize):
            raise SourceFailed(f"The peer's answer is nested deeper than {_DEEPEST} levels")
        return json.dumps(self.answer(fields)).encode()

    def _events(self, text: bytes) -> Iterator[bytes]:
        held: list[bytes] = []
        for line in _LINE_END.split(text):
            name, _, value = line.partition(b":")
            if name == _DATA:
                held.append(value.removeprefix(b" "))
                continue
            if held and not line:
                yield from self._told(held)
                held.clear()
            yield line

    def _told(self, held: list[bytes]) -> Iterator[bytes]:
        lean = self._lean(b"\n".join(held))
        for line in held if lean is None else (lean,):
            yield b"data: " + line
