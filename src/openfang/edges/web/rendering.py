"""HTML from templates, all of them read and compiled at once; and the files beside them."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from openfang.core.values import dataclass
from openfang.edges.web import words

if TYPE_CHECKING:
    from collections.abc import Mapping

_FOLDER: Final = Path(__file__).parent
_TYPES: Final = {
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file that pages refer to."""

    body: bytes
    content_type: bytes
    mark: str


def read_assets() -> dict[str, Asset]:
    """Read the files that pages refer to; licences and the like are for people."""
    return {
        file.name: _asset(file)
        for file in sorted((_FOLDER / "static").iterdir())
        if file.suffix in _TYPES
    }


def _asset(file: Path) -> Asset:
    body = file.read_bytes()
    return Asset(body, _TYPES[file.suffix], sha256(body).hexdigest()[:12])


class Drawing:
    """Makes pages of templates; whatever comes from outside is text in them, never markup."""

    def __init__(self, assets: Mapping[str, Asset]) -> None:
        self._assets = assets
        self._known = Environment(
            loader=FileSystemLoader(_FOLDER / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._known.filters.update(words.FILTERS)
        self._templates = {
            name: self._known.get_template(name) for name in self._known.list_templates()
        }

    def draw(self, template: str, values: Mapping[str, Any]) -> str:
        """Make one page, or a piece of one."""
        return self._templates[template].render({**values, "static": self._static})

    def _static(self, name: str) -> str:
        return f"/static/{name}?v={self._assets[name].mark}"
