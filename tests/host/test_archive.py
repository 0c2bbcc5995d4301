"""Packing and unpacking: what comes out is what went in, and no archive reaches outside."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.host.archive import Packer, stays_inside
from openfang.host.tree import TreeCopy
from openfang.host.unpack import ArchiveRefused, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

pytestmark = pytest.mark.requirement("C2.1")
ROOM = 100_000_000


def packed(root: Path, instead: Mapping[str, Path] | None = None) -> tuple[bytes, TreeCopy]:
    """Pack a folder; return the archive, and what was told of it."""
    out = io.BytesIO()
    packer = Packer(out)
    tree = TreeCopy(
        packer=packer,
        check=lambda: None,
        without=lambda path: path == "skipped",
        instead=instead or {},
    )
    tree.copy(root)
    packer.close()
    return out.getvalue(), tree


def shown(root: Path) -> dict[str, object]:
    """Everything below a folder: content, target or nothing."""
    found: dict[str, object] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = os.readlink(path)  # noqa: PTH115 - as it is written
        else:
            found[name] = path.read_bytes() if path.is_file() else None
    return found


@pytest.fixture
def full(tmp_path: Path) -> Path:
    root = tmp_path / "full"
    (root / "a/b").mkdir(parents=True)
    (root / "a/b/empty").touch()
    (root / "a/run").write_bytes(b"#!/bin/sh\n")
    (root / "a/run").chmod(0o4755)
    (root / "a/block").write_bytes(bytes(range(256)) * 4)
    (root / f"a/{'long' * 60}").write_text("a long name")
    (root / "a/übung\n.txt").write_text("odd")
    (root / os.fsdecode(b"not\xfftext")).write_text("odd")
    (root / "a/inside").symlink_to("../a/b")
    (root / "a/nowhere").symlink_to("nothing")
    return root


def test_what_comes_out_is_what_went_in(full: Path, tmp_path: Path) -> None:
    archive, tree = packed(full)
    out = tmp_path / "out"
    out.mkdir()
    digests = unpack(io.BytesIO(archive), out, most_bytes=ROOM)
    assert shown(out) == shown(full)
    assert digests == tree.packer.digests
    assert digests.keys() == shown(full).keys()
    assert tree.left_out == []
    assert (out / "a/run").stat().st_mode & 0o7777 == 0o700
    assert (out / "a/block").stat().st_mode & 0o7777 == 0o600
    assert (out / "a").stat().st_mode & 0o7777 == 0o700
    assert int((out / "a/block").stat().st_mtime) == int((full / "a/block").stat().st_mtime)
    with tarfile.open(fileobj=io.BytesIO(archive)) as usual:
        assert set(usual.getnames()) == digests.keys()


def test_what_leads_out_or_is_no_file_is_left_out_and_told(full: Path, tmp_path: Path) -> None:
    (full / "etc").symlink_to("/etc")
    (full / "up").symlink_to("../secret")
    os.mkfifo(full / "a/pipe")
    (full / "skipped").write_text("not wanted")
    (tmp_path / "secret").write_text("not ours")
    archive, tree = packed(full)
    assert sorted(tree.left_out) == [
        "a/pipe is neither a file nor a folder",
        "etc is a link that leads out",
        "up is a link that leads out",
    ]
    assert {"etc", "up", "skipped", "a/pipe"}.isdisjoint(tree.packer.digests)
    assert b"not ours" not in gzip.decompress(archive)


def test_a_tree_that_is_too_deep_is_cut_and_told(tmp_path: Path) -> None:
    deep = tmp_path / "root"
    deep.mkdir()
    here = os.open(deep, os.O_RDONLY)
    for _ in range(150):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    _, tree = packed(deep)
    assert len(tree.packer.digests) == 99
    assert [reason.endswith("lies too deep") for reason in tree.left_out] == [True]


def test_a_file_that_shrinks_meanwhile_ends_with_zeros_and_is_told(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "log").write_bytes(b"x" * 3_000_000)
    out = io.BytesIO()
    packer = Packer(out)
    reads: list[int] = []

    def check() -> None:
        reads.append(1)
        if len(reads) == 2:
            os.truncate(root / "log", 10)

    tree = TreeCopy(packer=packer, check=check, without=lambda _: False, instead={})
    tree.copy(root)
    packer.close()
    assert tree.left_out == ["log shrank while it was copied: it ends with zeros"]
    into = tmp_path / "into"
    into.mkdir()
    assert unpack(io.BytesIO(out.getvalue()), into, most_bytes=ROOM) == packer.digests
    assert (into / "log").stat().st_size == 3_000_000


def made(*members: tarfile.TarInfo | tuple[tarfile.TarInfo, bytes], style: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=style) as archive:
        for member in members:
            info, content = member if isinstance(member, tuple) else (member, b"")
            info.size = len(content) if info.isreg() else info.size
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def info(name: str, kind: bytes = tarfile.REGTYPE, **more: object) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type = kind
    for field, value in more.items():
        setattr(found, field, value)
    return found


def extended(fields: Mapping[str, str], member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.pax_headers = dict(fields)
    return member


HOSTILE: dict[str, Callable[[], bytes]] = {
    "absolute": lambda: made((info("/evil"), b"x"), style=tarfile.PAX_FORMAT),
    "climbing": lambda: made((info("../evil"), b"x"), style=tarfile.PAX_FORMAT),
    "climbing inside": lambda: made(
        info("a", tarfile.DIRTYPE), (info("a/../../evil"), b"x"), style=tarfile.PAX_FORMAT
    ),
    "climbing in an extended header": lambda: made(
        (extended({"path": "../evil"}, info("harmless")), b"x"), style=tarfile.PAX_FORMAT
    ),
    "a folder above": lambda: made(info("..", tarfile.DIRTYPE), style=tarfile.PAX_FORMAT),
    "a link out": lambda: made(
        info("a", tarfile.SYMTYPE, linkname="../evil"), style=tarfile.PAX_FORMAT
    ),
    "an absolute link": lambda: made(
        info("a", tarfile.SYMTYPE, linkname="/etc"), style=tarfile.PAX_FORMAT
    ),
    "a link that climbs through another": lambda: made(
        info("d", tarfile.SYMTYPE, linkname="."),
        info("e", tarfile.SYMTYPE, linkname="d/d/../.."),
        style=tarfile.PAX_FORMAT,
    ),
    "a file behind a link": lambda: made(
        info("a", tarfile.SYMTYPE, linkname="b"),
        info("b", tarfile.DIRTYPE),
        (info("a/evil"), b"x"),
        style=tarfile.PAX_FORMAT,
    ),
    "a hard link": lambda: made(
        info("a", tarfile.LNKTYPE, linkname="/etc/passwd"), style=tarfile.PAX_FORMAT
    ),
    "a device": lambda: made(
        info("a", tarfile.CHRTYPE, devmajor=1, devminor=5), style=tarfile.PAX_FORMAT
    ),
    "a pipe": lambda: made(info("a", tarfile.FIFOTYPE), style=tarfile.PAX_FORMAT),
    "twice the same": lambda: made((info("a"), b"x"), (info("a"), b"y"), style=tarfile.PAX_FORMAT),
    "a link in place of a file": lambda: made(
        (info("a"), b"x"), info("a", tarfile.SYMTYPE, linkname="b"), style=tarfile.PAX_FORMAT
    ),
    "a file below a file": lambda: made(
        (info("a"), b"x"), (info("a/b"), b"y"), style=tarfile.PAX_FORMAT
    ),
    "a folder that was never made": lambda: made((info("a/b"), b"x"), style=tarfile.PAX_FORMAT),
    "a name without end": lambda: made((info("n" * 300), b"x"), style=tarfile.PAX_FORMAT),
    "a path without end": lambda: made((info("n/" * 3000 + "n"), b"x"), style=tarfile.PAX_FORMAT),
    "a name with a zero in it": lambda: made(
        (extended({"path": "a\0b"}, info("harmless")), b"x"), style=tarfile.PAX_FORMAT
    ),
    "another dialect": lambda: made((info("n" * 200), b"x"), style=tarfile.GNU_FORMAT),
    "a sparse file": lambda: made(info("a", tarfile.GNUTYPE_SPARSE), style=tarfile.GNU_FORMAT),
    "a global header": lambda: gzip.compress(
        tarfile.TarInfo.create_pax_global_header({"path": "../evil"}) + bytes(1024)
    ),
    "a header without end": lambda: made(
        (extended({"comment": "x" * 100_000}, info("a")), b"x"), style=tarfile.PAX_FORMAT
    ),
    "a size that is none": lambda: made(
        (extended({"size": "-512"}, info("a")), b"x"), style=tarfile.PAX_FORMAT
    ),
    "a size beyond the end": lambda: made(
        (extended({"size": "9" * 30}, info("a")), b"x"), style=tarfile.PAX_FORMAT
    ),
    "a bomb": lambda: made((info("a"), bytes(70_000_000)), style=tarfile.PAX_FORMAT),
    "no end": lambda: made((info("a"), b"x" * 600), style=tarfile.PAX_FORMAT)[:-20],
    "something behind the end": lambda: gzip.compress(bytes(1024) + b"x" * 512),
    "nothing": lambda: b"",
    "no archive": lambda: b"this is no archive at all",
    "an empty one": lambda: gzip.compress(b""),
    "noise": lambda: gzip.compress(b"\x01" * 5000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused_and_writes_nothing_outside(name: str, tmp_path: Path) -> None:
    inner = tmp_path / "outer/inner"
    inner.mkdir(parents=True)
    with pytest.raises(ArchiveRefused):
        unpack(io.BytesIO(HOSTILE[name]()), inner, most_bytes=ROOM)
    assert [path.name for path in tmp_path.iterdir()] == ["outer"]
    assert [path.name for path in inner.parent.iterdir()] == ["inner"]


def test_an_archive_that_needs_more_than_there_is_room_for_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/noise").write_bytes(os.urandom(2_000_000))
    archive, _ = packed(tmp_path / "in")
    (tmp_path / "out").mkdir()
    with pytest.raises(ArchiveRefused, match="room"):
        unpack(io.BytesIO(archive), tmp_path / "out", most_bytes=1_000_000)


def test_the_most_compressible_file_of_all_is_taken_back(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with (tmp_path / "in/zeros").open("wb") as file:
        file.truncate(70_000_000)
    archive, _ = packed(tmp_path / "in")
    (tmp_path / "out").mkdir()
    assert unpack(io.BytesIO(archive), tmp_path / "out", most_bytes=1_000_000_000)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_damaged_archive_is_refused_or_read_and_nothing_else(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    base = tmp_path_factory.mktemp("fuzz")
    (base / "in/folder").mkdir(parents=True)
    (base / "in/folder/file").write_bytes(b"content")
    (base / f"in/{'n' * 150}").write_bytes(b"x" * 700)
    (base / "in/folder/link").symlink_to("file")
    plain = bytearray(gzip.decompress(packed(base / "in")[0]))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, 5000))
        plain[at] = data.draw(st.integers(0, 255))
        block = at // 512 * 512
        if data.draw(st.booleans()):  # so that more than the checksum is tried
            header = plain[block : block + 512]
            total = sum(header[:148]) + sum(header[156:]) + 8 * ord(" ")
            plain[block + 148 : block + 156] = b"%06o\0 " % total
    (base / "out/in").mkdir(parents=True)
    with suppress(ArchiveRefused):
        unpack(io.BytesIO(gzip.compress(bytes(plain), 1)), base / "out/in", most_bytes=ROOM)
    assert [path.name for path in (base / "out").iterdir()] == ["in"]
    assert {path.name for path in base.iterdir()} == {"in", "out"}


@settings(max_examples=200, deadline=None)
@given(
    links=st.dictionaries(
        st.sampled_from(["a", "b", "c", "d/a", "d/b", "d/e/a"]),
        st.lists(st.sampled_from(["a", "b", "d", "e", "..", "."]), min_size=1, max_size=6),
        max_size=5,
    )
)
def test_links_that_stay_inside_do_so_whatever_they_pass(
    links: dict[str, list[str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("links")
    (root / "d/e").mkdir(parents=True)
    for name, steps in links.items():
        if stays_inside(name, "/".join(steps)):
            (root / name).symlink_to("/".join(steps))
    for name in links:
        try:
            real = (root / name).resolve(strict=False)
        except RuntimeError:  # a ring
            continue
        assert real.is_relative_to(root.resolve())
