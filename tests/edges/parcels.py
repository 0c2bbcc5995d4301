"""Extensions and skills as they come over the wire: archives in base64."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from openfang.app.installs.starters import new_extension
from openfang.app.skills.starters import new_skill
from openfang.host.folders import digest_of, files_of
from openfang.host.parcels import pack


def extension_parcel(name: str, **changed: Any) -> tuple[str, str]:
    """Pack the extension that `ext new` makes, with other keys in its manifest: and its digest."""
    files = dict(new_extension(name))
    files["manifest.json"] = json.dumps({**json.loads(files["manifest.json"]), **changed})
    return parcel_of(files)


def skill_parcel(name: str) -> tuple[str, str]:
    """Pack the skill that `skills new` makes: and its digest."""
    return parcel_of(dict(new_skill(name)))


def parcel_of(files: dict[str, str]) -> tuple[str, str]:
    with TemporaryDirectory() as folder:
        for path, text in files.items():
            Path(folder, path).write_text(text)
        found = digest_of(files_of(Path(folder)))
        return b64encode(pack(Path(folder))).decode(), found
