"""The README as a package carries it: what it links to in the checkout is only named there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?://|#)[^)]*\)")


def without_places(text: str) -> str:
    """Keep the words of links that lead into the checkout, and drop where they lead."""
    return _LINK.sub(r"\1", text)


class PackageReadme(MetadataHookInterface):
    """Gives the package its description when it is built."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add it."""
        text = Path(self.root, "README.md").read_text("utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": without_places(text)}
