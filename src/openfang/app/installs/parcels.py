"""What is brought to the door, from a path that a person names: a folder, or an archive of one."""

from __future__ import annotations

from pathlib import Path

from openfang.core.errors import NotFound, Rejected
from openfang.host.parcels import LARGEST_PARCEL, pack


def parcel_of(path: str) -> tuple[bytes, str]:
    """Pack a folder, or read an archive as it is; with the path that it came from. It blocks."""
    found = Path(path).expanduser().resolve()
    if found.is_dir():
        return pack(found), str(found)
    try:
        size = found.stat().st_size
        if size > LARGEST_PARCEL:
            raise Rejected(
                f"{found} has {size} bytes; an archive has at most {LARGEST_PARCEL}.",
                status=413,
                rule="archive_too_large",
                way_out="leave out what it does not need",
            )
        return found.read_bytes(), str(found)
    except OSError as error:
        raise NotFound(
            f"{found} cannot be read: {error.strerror}.", way_out="name a folder or an archive"
        ) from error
