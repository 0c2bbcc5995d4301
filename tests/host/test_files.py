from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from openfang.host.files import FileEntry, FileRefused, Folder

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

pytestmark = pytest.mark.requirement("C6.2")

SECRET = b"from outside"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_bytes(SECRET)
    return root


@pytest.fixture
def folder(root: Path) -> Iterator[Folder]:
    with closing(Folder(root)) as folder:
        yield folder


def test_what_is_written_can_be_read(folder: Folder, root: Path) -> None:
    folder.write("a/b/c.txt", b"hello")
    assert folder.read("a/b/c.txt", limit=5) == b"hello"
    assert folder.read(str(root / "a/b/c.txt"), limit=5) == b"hello"
    assert (root / "a/b/c.txt").read_bytes() == b"hello"


def test_a_new_file_is_for_its_owner_and_a_replaced_one_keeps_its_mode(
    folder: Folder, root: Path
) -> None:
    folder.write("new", b"1")
    assert stat.S_IMODE((root / "new").stat().st_mode) == 0o600
    (root / "script").write_bytes(b"1")
    (root / "script").chmod(0o4755)
    folder.write("script", b"2")
    assert stat.S_IMODE((root / "script").stat().st_mode) == 0o755


def test_writing_leaves_no_other_file_behind(folder: Folder, root: Path) -> None:
    (root / "taken").mkdir()
    folder.write("ok", b"x" * 3_000_000)
    with pytest.raises(FileRefused):
        folder.write("taken", b"x")
    assert names(root) == ["ok", "taken"]


def test_a_reader_sees_the_old_or_the_new_file_and_nothing_between(
    folder: Folder, root: Path
) -> None:
    folder.write("f", b"a" * 100_000)
    stop = threading.Event()

    def write() -> None:
        with closing(Folder(root)) as own:
            for letter in (b"b", b"a") * 100:
                own.write("f", letter * 100_000)
        stop.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen: set[bytes] = set()
    while not stop.is_set():
        seen.add(folder.read("f", limit=100_000))
    writer.join()
    assert seen <= {b"a" * 100_000, b"b" * 100_000}


def test_a_file_over_the_limit_is_refused_with_its_size(folder: Folder, root: Path) -> None:
    (root / "big").write_bytes(b"x" * 11)
    with pytest.raises(FileRefused, match="11 bytes"):
        folder.read("big", limit=10)
    assert folder.read("big", limit=11) == b"x" * 11


def test_a_folder_is_listed_in_order_with_kinds_and_sizes(folder: Folder, root: Path) -> None:
    (root / "b.txt").write_bytes(b"12345")
    (root / "a").mkdir()
    (root / "c").symlink_to("b.txt")
    os.mkfifo(root / "d")
    listed = folder.list(".", limit=10)
    assert listed == (
        FileEntry(name="a", kind="folder", size=0),
        FileEntry(name="b.txt", kind="file", size=5),
        FileEntry(name="c", kind="link", size=0),
        FileEntry(name="d", kind="other", size=0),
    )
    assert folder.list("/".join((str(root),)), limit=2) == listed[:2]
    assert folder.list("a", limit=10) == ()


def test_a_name_that_is_not_text_is_shown_as_far_as_it_goes(folder: Folder, root: Path) -> None:
    (root / os.fsdecode(b"x\xff")).write_bytes(b"")
    assert folder.list(".", limit=1)[0].name == "x\ufffd"


@pytest.mark.parametrize(
    "path", ["../outside/secret.txt", "/etc/passwd", "", ".", "a/../../x", "n\0"]
)
def test_a_path_that_leaves_is_refused(folder: Folder, path: str) -> None:
    with pytest.raises(FileRefused):
        folder.read(path, limit=100)
    with pytest.raises(FileRefused):
        folder.write(path, b"x")


def test_symlinks_are_not_followed(folder: Folder, root: Path) -> None:
    (root / "file").symlink_to("../outside/secret.txt")
    (root / "dir").symlink_to("../outside")
    (root / "real").mkdir()
    (root / "inner").symlink_to("real")
    for path in ("file", "dir/secret.txt", "inner/x"):
        with pytest.raises(FileRefused):
            folder.read(path, limit=100)
    for path in ("dir/new", "file", "inner/new"):
        with pytest.raises(FileRefused):
            folder.write(path, b"overwritten")
    for path in ("dir", "inner", "dir/deeper"):
        with pytest.raises(FileRefused):
            folder.list(path, limit=100)
    assert (root.parent / "outside" / "secret.txt").read_bytes() == SECRET
    assert names(root.parent / "outside") == ["secret.txt"]
    assert names(root / "real") == []


def test_a_root_that_is_itself_a_symlink_is_the_operators_choice(root: Path) -> None:
    (root / "f").write_bytes(b"x")
    link = root.parent / "link"
    link.symlink_to(root)
    with closing(Folder(link)) as folder:
        assert folder.read("f", limit=1) == b"x"


def test_a_hard_link_is_not_read_and_not_written_through(folder: Folder, root: Path) -> None:
    outside = root.parent / "outside" / "secret.txt"
    os.link(outside, root / "twin")
    with pytest.raises(FileRefused, match="hard link"):
        folder.read("twin", limit=100)
    folder.write("twin", b"mine")
    assert outside.read_bytes() == SECRET
    assert folder.read("twin", limit=100) == b"mine"


@pytest.mark.timeout(10)
def test_what_is_not_a_regular_file_neither_hangs_nor_answers(folder: Folder, root: Path) -> None:
    os.mkfifo(root / "fifo")
    (root / "dir").mkdir()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(root / "socket"))
    for name in ("fifo", "dir", "socket"):
        with pytest.raises(FileRefused):
            folder.read(name, limit=100)
        with pytest.raises(FileRefused):
            folder.write(name, b"x")
    listener.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="making a device needs root")
def test_a_device_is_refused(folder: Folder, root: Path) -> None:
    os.mknod(root / "zero", 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    with pytest.raises(FileRefused, match="regular"):
        folder.read("zero", limit=100)


@pytest.mark.parametrize("name", ["missing", "missing/below", "file/below"])
def test_what_is_not_there_is_named(folder: Folder, root: Path, name: str) -> None:
    (root / "file").write_bytes(b"")
    with pytest.raises(FileRefused, match=name):
        folder.read(name, limit=1)


def test_a_missing_root_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileRefused, match="nowhere"):
        Folder(tmp_path / "nowhere")


def test_a_closed_folder_answers_no_more(root: Path) -> None:
    folder = Folder(root)
    folder.close()
    folder.close()
    with pytest.raises(FileRefused):
        folder.list(".", limit=1)


def test_no_descriptor_is_left_open(folder: Folder, root: Path) -> None:
    (root / "link").symlink_to("/etc")
    before = len(names(Path("/proc/self/fd")))
    for _ in range(20):
        folder.write("a/b/c", b"x")
        folder.read("a/b/c", limit=1)
        folder.list("a/b", limit=1)
        for path in ("link/passwd", "a/b", "a/none/x"):
            with pytest.raises(FileRefused):
                folder.read(path, limit=10)
    assert len(names(Path("/proc/self/fd"))) == before


SWAP = """
import ctypes, sys, time
libc = ctypes.CDLL(None)
one, other = (name.encode() for name in sys.argv[1:])
print("ready", flush=True)
deadline = time.monotonic() + 20
while time.monotonic() < deadline:
    for _ in range(1000):
        libc.renameat2(-100, one, -100, other, 2)
"""


@contextmanager
def swapping(one: Path, other: Path) -> Generator[None]:
    """Have another process exchange two names without a pause."""
    argv = [sys.executable, "-c", SWAP, str(one), str(other)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as swapper:
        assert swapper.stdout is not None
        assert swapper.stdout.readline() == b"ready\n"
        try:
            yield
        finally:
            swapper.kill()


def test_swapping_a_folder_for_a_symlink_never_lets_a_read_or_write_out(
    folder: Folder, root: Path
) -> None:
    outside = root.parent / "outside"
    (root / "d").mkdir()
    (root / "d" / "secret.txt").write_bytes(b"inside")
    (root / "away").symlink_to(outside)
    with swapping(root / "d", root / "away"):
        confined = _collect(lambda: _attempt(folder))
        unconfined = _collect((root / "d" / "secret.txt").read_bytes)
    assert confined == {b"inside", None}
    assert unconfined == {b"inside", SECRET}
    assert names(outside) == ["secret.txt"]
    assert (outside / "secret.txt").read_bytes() == SECRET


def _collect(attempt: Callable[[], bytes | None]) -> set[bytes | None]:
    """Try often, and go on for up to five seconds until the race has shown both its sides."""
    seen = {attempt() for _ in range(2000)}
    deadline = time.monotonic() + 5
    while len(seen) < 2 and time.monotonic() < deadline:
        seen.add(attempt())
    return seen


def _attempt(folder: Folder) -> bytes | None:
    try:
        folder.list("d", limit=5)
        folder.write("d/new.txt", b"x")
        return folder.read("d/secret.txt", limit=100)
    except FileRefused:
        return None


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())
