"""Folders and archives of others: what is taken in of them, and what ends it."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

from openfang.host import folders, parcels
from openfang.host.folders import FolderRefused, copy_folder, digest_of, files_of
from openfang.host.parcels import pack, unpack

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C2.1", "C6.3")


def filled(folder: Path) -> Path:
    (folder / "deep/er").mkdir(parents=True)
    (folder / "manifest.json").write_text("{}")
    (folder / "deep/er/run.sh").write_text("#!/bin/sh\n")
    (folder / "deep/er/run.sh").chmod(0o755)
    (folder / ".git").mkdir()
    (folder / ".git/config").write_text("[core]")
    return folder


def tar(**members: bytes | tarfile.TarInfo) -> bytes:
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w:gz") as archive:
        for name, content in members.items():
            if isinstance(content, tarfile.TarInfo):
                archive.addfile(content)
                continue
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return into.getvalue()


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def room(tmp_path: Path) -> Path:
    into = tmp_path / "into"
    into.mkdir(parents=True)
    return into


def test_a_folder_is_named_by_all_its_files_wherever_it_lies(tmp_path: Path) -> None:
    one = filled(tmp_path / "one")
    files = files_of(one)
    assert [(file.path, file.executable) for file in files] == [
        ("deep/er/run.sh", True),
        ("manifest.json", False),
    ]
    copy = tmp_path / "copy"
    copy.mkdir()
    assert copy_folder(one, copy) == files
    assert digest_of(files_of(copy)) == digest_of(files)
    assert stat.S_IMODE((copy / "manifest.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((copy / "deep/er/run.sh").stat().st_mode) == 0o700
    (copy / "deep/er/run.sh").chmod(0o600)
    assert digest_of(files_of(copy)) != digest_of(files)


def test_what_is_packed_comes_out_the_same(tmp_path: Path) -> None:
    folder = filled(tmp_path / "one")
    found = unpack(pack(folder), room(tmp_path))
    assert files_of(found) == files_of(folder)


def test_one_folder_at_the_top_of_an_archive_is_what_is_meant(tmp_path: Path) -> None:
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w") as archive:
        archive.writestr("word-tools-1.0/manifest.json", "{}")
        archive.writestr("word-tools-1.0/lib/a.py", "")
    found = unpack(into.getvalue(), room(tmp_path))
    assert found.name == "word-tools-1.0"
    assert [file.path for file in files_of(found)] == ["lib/a.py", "manifest.json"]


@pytest.mark.parametrize(
    "member",
    [
        {"../out.py": b"x"},
        {"/etc/out.py": b"x"},
        {"a/../../out.py": b"x"},
        {"a\\..\\out.py": b"x"},
        {"a\u202epy.exe": b"x"},
        {"link": link("link", "/etc/passwd")},
        {"link": link("link", "manifest.json")},
        {"hard": link("hard", "/etc/passwd", tarfile.LNKTYPE)},
        {"fifo": link("fifo", "", tarfile.FIFOTYPE)},
        {"device": link("device", "", tarfile.CHRTYPE)},
        {"a": b"a file", "a/b": b"below a file"},
    ],
    ids=lambda member: ascii(next(iter(member))),
)
def test_no_archive_leads_out_of_its_folder(
    tmp_path: Path, member: dict[str, bytes | tarfile.TarInfo]
) -> None:
    into = room(tmp_path)
    with pytest.raises(FolderRefused):
        unpack(tar(**member), into)
    assert not (tmp_path / "out.py").exists()


def test_a_link_in_a_zip_is_refused(tmp_path: Path) -> None:
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w") as archive:
        info = zipfile.ZipInfo("link")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(FolderRefused, match="a link or a device"):
        unpack(into.getvalue(), room(tmp_path))


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parcels, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(parcels, "_OVERHEAD", 0)
    with pytest.raises(FolderRefused, match="unpacks to more than"):
        unpack(tar(zeros=bytes(8 << 20)), room(tmp_path))


@pytest.mark.parametrize("data", [b"", b"not an archive", b"PK\x03\x04 broken", b"\x1f\x8b broken"])
def test_what_is_no_archive_is_refused_with_a_reason(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(FolderRefused):
        unpack(data, room(tmp_path))


def test_a_folder_with_a_link_or_a_pipe_is_not_taken_in(tmp_path: Path) -> None:
    folder = filled(tmp_path / "one")
    (folder / "link").symlink_to("/etc/passwd")
    with pytest.raises(FolderRefused, match="link is a link"):
        files_of(folder)
    (folder / "link").unlink()
    os.mkfifo(folder / "pipe")
    with pytest.raises(FolderRefused, match="neither a file nor a folder"):
        files_of(folder)


def test_too_many_files_and_too_large_ones_are_not_taken_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = filled(tmp_path / "one")
    monkeypatch.setattr(folders, "MOST_FILES", 1)
    with pytest.raises(FolderRefused, match="more than 1 files"):
        files_of(folder)
    monkeypatch.undo()
    with (folder / "large").open("wb") as file:
        file.truncate(folders.LARGEST_FILE + 1)
    with pytest.raises(FolderRefused, match="large has more than"):
        files_of(folder)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_is_packed_as_everybody_packs_it(tmp_path: Path, method: int) -> None:
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w", method) as archive:
        archive.writestr("manifest.json", "{}" * 500)
    damaged = bytearray(into.getvalue())
    damaged[60:70] = bytes(10)
    for data in (into.getvalue(), bytes(damaged)):
        with pytest.raises(FolderRefused, match=f"packed by method {method}"):
            unpack(data, room(tmp_path / str(len(list(tmp_path.iterdir())))))
