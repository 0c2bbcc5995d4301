"""Which file a local model is, and whether it can be one."""

from __future__ import annotations

import re
from stat import S_ISREG
from typing import TYPE_CHECKING, Final

from openfang.agents.models.failures import ModelFailed, Trouble
from openfang.agents.models.providers import DEFAULT, LOCAL
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from pathlib import Path

FOLDER: Final = "models"
_MAGIC: Final = b"GGUF"
_PART = re.compile(r"-\d{5}-of-(\d{5})\.gguf\Z")
_MOST_PARTS: Final = 512
_WHERE: Final = f"[model] model: the path of a GGUF file, or its name in {FOLDER}/ of the home"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """A model file as it is now, and what it is served with. Two that are equal are the same.

    `window` is what it can read at once, in tokens; 0 `threads` are as many as the machine has,
    less one.
    """

    file: Path
    size: int
    changed: int
    window: int
    threads: int

    @property
    def name(self) -> str:
        """How it is named to people: where it lies is the operator's business."""
        return self.file.name


def find_weights(model: str, home: Path, *, window: int, threads: int) -> Weights:
    """Find a model's file. Blocks."""
    if model == DEFAULT:
        raise _failed(f"No model of {LOCAL} is named.")
    file = home / FOLDER / model
    try:
        status = file.stat()
        magic = _beginning(file) if S_ISREG(status.st_mode) else b""
    except OSError as error:
        raise _failed(f"The model file {file.name} cannot be read.", str(error)) from error
    if magic != _MAGIC:
        raise _failed(f"{file.name} is no GGUF file.", str(file))
    changed = status.st_mtime_ns
    return Weights(file=file, size=status.st_size, changed=changed, window=window, threads=threads)


def _beginning(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(len(_MAGIC))


def parts(file: Path) -> tuple[Path, ...]:
    """Name the files of a model that was split; of most it is one. Blocks."""
    split = _PART.search(file.name)
    if split is None:
        return (file,)
    stem, number = file.name[: split.start()], min(int(split[1]), _MOST_PARTS)
    names = (f"{stem}-{one:05}-of-{split[1]}.gguf" for one in range(1, number + 1))
    return tuple(path for path in map(file.with_name, names) if path.is_file())


def _failed(message: str, detail: str = "") -> ModelFailed:
    return ModelFailed(message, trouble=Trouble.NO_MODEL, way_out=_WHERE, detail=detail)
