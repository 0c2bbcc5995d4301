"""What can be told of a picture without decoding it. It blocks: use it in a thread.

Importing this module imports Pillow: do it when the first picture is looked at.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

from PIL import Image

from openfang.core.values import dataclass
from openfang.host.files import FileRefused

if TYPE_CHECKING:
    from PIL.ImageFile import ImageFile

_MOST_FRAMES: Final = 1_000
# Of the many formats that Pillow knows, those that people exchange; some others start programs.
_FORMATS: Final = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
_MEDIA_TYPES: Final = {
    "PNG": "image/png",
    "JPEG": "image/jpeg",
    "MPO": "image/jpeg",
    "GIF": "image/gif",
    "WEBP": "image/webp",
    "BMP": "image/bmp",
    "TIFF": "image/tiff",
}
_TABLE: Final = 0x80
_EXTENSION: Final = 0x21
_FRAME: Final = 0x2C


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The facts of one picture; more than a thousand frames are not counted."""

    format: str
    media_type: str
    bytes: int
    width: int
    height: int
    mode: str
    frames: int

    @property
    def line(self) -> str:
        """All of it in one line."""
        more = " or more" if self.frames == _MOST_FRAMES else ""
        frames = f", {self.frames}{more} frames" if self.frames > 1 else ""
        size = f"{self.width} x {self.height} pixels"
        return f"{self.format}, {size}, {self.mode}{frames}, {self.bytes} bytes."


def look_at(path: str, data: bytes, most_pixels: int) -> Picture:
    """Read the head of a picture; one with too many pixels is refused before any is decoded."""
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            _check_pixels(path, image.width, image.height, most_pixels)
            return _facts(image, data)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise _too_large(path, f"more than {most_pixels}", most_pixels) from None
    except FileRefused:
        raise
    except Exception:  # noqa: BLE001 - a broken file makes a decoder raise anything
        raise FileRefused(
            f"{path!r} is not an image that can be read.",
            way_out="a whole PNG, JPEG, GIF, WebP, BMP or TIFF file",
        ) from None


def _facts(image: ImageFile, data: bytes) -> Picture:
    format_ = image.format or ""
    return Picture(
        format=format_,
        media_type=_MEDIA_TYPES[format_],
        bytes=len(data),
        width=image.width,
        height=image.height,
        mode=image.mode,
        frames=min(_frames(image, data), _MOST_FRAMES),
    )


def _check_pixels(path: str, width: int, height: int, most: int) -> None:
    if width * height > most:
        raise _too_large(path, f"{width} x {height}", most)


def _too_large(path: str, pixels: str, most: int) -> FileRefused:
    return FileRefused(
        f"{path!r} has {pixels} pixels; at most {most} are looked at.",
        way_out="tools.image.max_pixels",
    )


def _frames(image: ImageFile, data: bytes) -> int:
    """Count frames in a time that grows with the file alone: Pillow's own count may take hours."""
    if image.format == "GIF":
        return _gif_frames(data)
    if image.format == "TIFF":
        return _pages(image)
    return int(getattr(image, "n_frames", 1))


def _pages(image: ImageFile) -> int:
    try:
        for page in range(1, _MOST_FRAMES):
            image.seek(page)
    except EOFError:
        return image.tell() + 1
    return _MOST_FRAMES


def _gif_frames(data: bytes) -> int:
    """Go from block to block: each says how long it is."""
    at, frames = 13 + _colours(data[10]), 0
    while at + 10 < len(data) and frames < _MOST_FRAMES:
        if data[at] == _FRAME:
            frames += 1
            at = _behind(data, at + 11 + _colours(data[at + 9]))
        elif data[at] == _EXTENSION:
            at = _behind(data, at + 2)
        else:
            break
    return max(frames, 1)


def _colours(packed: int) -> int:
    """How many bytes a table of colours takes, by the byte that announces it."""
    return 3 << (packed & 7) + 1 if packed & _TABLE else 0


def _behind(data: bytes, at: int) -> int:
    while at < len(data) and data[at]:
        at += data[at] + 1
    return at + 1
