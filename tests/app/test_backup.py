"""A backup is whole whatever happens meanwhile, and a restore never leaves half a home."""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread

from openfang.agents.sessions import StoredSessions
from openfang.app.auth.identify import identify
from openfang.app.environment import credential
from openfang.app.home.backup import Backup, back_up
from openfang.app.home.manifest import MANIFEST
from openfang.app.home.new import init_home
from openfang.app.home.paths import Home
from openfang.app.home.restore import Restored, restore
from openfang.app.lifespan import open_app, sign_head
from openfang.app.verify import verify
from openfang.core.agents import Message, Speaker
from openfang.core.errors import Conflict, HomeError, NotFound, OpenFangError
from openfang.core.events import TOOL_HELD, Record
from openfang.core.labels import Labels
from openfang.host.secrets import MasterKey, SecretStore
from openfang.host.unpack import ArchiveRefused

if TYPE_CHECKING:
    from collections.abc import Callable

    from openfang.core.log import Verification

pytestmark = pytest.mark.requirement("C13.2", "C18.3")
HERE = Path(__file__).parent


@pytest.fixture
def made(tmp_path: Path) -> Home:
    """A home with something of everything in it."""
    home, _ = init_home(tmp_path / "home", {})
    (home.path / "agents/writer").mkdir(parents=True)
    (home.path / "agents/writer/agent.toml").write_text('name = "writer"\n')
    notes = home.workspace("key-admin")
    notes.mkdir(parents=True)
    (notes / "note").write_text("as it was")
    (notes / "again").symlink_to("note")
    SecretStore(home.path, MasterKey.open(home.path)).set("token", "very-secret-indeed")
    return home


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    folder = tmp_path / "backups"
    folder.mkdir()
    return folder


def backed_up(home: Home, to: Path) -> Backup:
    return anyio.run(partial(back_up, home, {}, str(to)))


def restored(file: Path, home: Path) -> Restored:
    return restore(file, home, time.time_ns())


def checked(home: Path) -> tuple[str, Verification]:
    """Use a home: who its key is, and whether its log is intact."""

    async def look() -> tuple[str, Verification]:
        async with open_app(Home(home), {}) as parts:
            caller = await identify(parts, credential(Home(home), {}), "cli")
            return caller.id, await verify(parts)

    return anyio.run(look)


def records(home: Path, event: str) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(home / "openfang.db")) as database:
        sql = "SELECT seq, payload FROM audit WHERE event = ? ORDER BY seq"
        return [{"seq": seq, **json.loads(text)} for seq, text in database.execute(sql, (event,))]


def test_a_restored_home_is_the_one_that_was_backed_up(
    made: Home, kept: Path, tmp_path: Path
) -> None:
    backup = backed_up(made, kept)
    assert backup.left_out == ()
    assert backup.file.name.startswith(f"openfang-{backup.manifest.node}-20")
    assert backup.file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in kept.iterdir()] == [backup.file.name]
    done = restored(backup.file, tmp_path / "new")
    new = Home(done.home)
    assert (done.aside, done.record) == (None, backup.manifest.seq + 1)
    assert (new.workspace("key-admin") / "again").read_text() == "as it was"
    assert (new.path / "agents/writer/agent.toml").exists()
    assert SecretStore(new.path, MasterKey.open(new.path)).get("token") == "very-secret-indeed"
    assert new.path.stat().st_mode & 0o777 == 0o700
    for file in ("key", "master.key", "secrets.json", "openfang.db", "config.toml"):
        assert (new.path / file).stat().st_mode & 0o777 == 0o600
    assert not (new.path / MANIFEST).exists()
    caller, found = checked(new.path)
    assert (caller, found.intact) == ("key:admin", True)
    (record,) = records(new.path, "home_restored")
    assert record["seq"] == record["head"] + 1 == done.record
    assert record["hash"] == backup.manifest.hash


def test_what_is_made_again_when_it_is_wanted_is_not_in_a_backup(
    made: Home, kept: Path, tmp_path: Path
) -> None:
    again = ("agents-env/ab12/bin/python", "children/echo/home/.cache/x", "children/echo/tmp/y")
    stays = ("children/echo/kept", "workspaces/agent-echo/agents-env/z", "servers/fs/home/token")
    for name in (*again, *stays):
        file = made.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    new = restored(backed_up(made, kept).file, tmp_path / "new").home
    assert [name for name in (*again, *stays) if (new / name).exists()] == list(stays)
    assert not (new / "agents-env").exists()


@pytest.mark.requirement("C13.1")
def test_a_backup_is_on_record_before_and_after(made: Home, kept: Path) -> None:
    backup = backed_up(made, kept)
    before, after = records(made.path, "home_backup")
    assert (before["state"], after["state"]) == ("started", "made")
    assert before["seq"] <= backup.manifest.seq < after["seq"]
    assert after["sha256"] == backup.sha256
    with pytest.raises(Conflict, match="exists already"):
        backed_up(made, backup.file)
    (kept / "folder").mkdir(mode=0o500)
    if os.geteuid():
        with pytest.raises(HomeError, match="could not be copied"):
            backed_up(made, kept / "folder/file")
        assert records(made.path, "home_backup")[-1]["state"] == "failed"


def test_what_the_home_held_before_is_moved_aside_whole(made: Home, kept: Path) -> None:
    backup = backed_up(made, kept)
    (made.workspace("key-admin") / "note").write_text("changed since")
    (made.path / "mine").write_text("mine")
    first, second = restored(backup.file, made.path), restored(backup.file, made.path)
    assert (made.workspace("key-admin") / "note").read_text() == "as it was"
    assert not (made.path / "mine").exists()
    assert first.aside is not None
    assert (first.aside / "mine").read_text() == "mine"
    assert (Home(first.aside).workspace("key-admin") / "note").read_text() == "changed since"
    assert second.aside not in {None, first.aside}
    assert checked(first.aside)[1].intact
    assert checked(made.path)[1].intact


def test_a_home_behind_a_link_stays_behind_it(made: Home, kept: Path, tmp_path: Path) -> None:
    backup = backed_up(made, kept)
    (tmp_path / "link").symlink_to(made.path)
    done = restored(backup.file, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert done.home == made.path
    assert checked(tmp_path / "link")[1].intact


def test_a_cut_tail_is_found_out_in_the_copy_as_well(
    made: Home, kept: Path, tmp_path: Path
) -> None:
    checked(made.path)
    backed_up(made, kept / "first.tar.gz")
    with closing(sqlite3.connect(made.path / "openfang.db", isolation_level=None)) as database:
        database.execute("DELETE FROM audit WHERE seq > 1")
        database.execute("DELETE FROM checkpoints WHERE seq > 1")
    copy = backed_up(made, kept / "second.tar.gz")
    done = restored(copy.file, tmp_path / "new")
    findings = checked(done.home)[1].findings
    assert {finding.kind for finding in findings} & {"cut", "rewritten"}


async def test_no_checkpoint_of_the_copy_is_ahead_of_its_database(made: Home, kept: Path) -> None:
    copies: list[Backup] = []

    async def copy() -> None:
        copies.extend([await back_up(made, {}, f"{kept}/{number}.tar.gz") for number in range(3)])
        group.cancel_scope.cancel()

    async with open_app(made, {}) as parts, anyio.create_task_group() as group:
        group.start_soon(copy)
        while True:
            await parts.broker.append([Record(event=TOOL_HELD)])
            await sign_head(parts)
    seqs = [copy.manifest.seq for copy in copies]
    assert seqs[2] > seqs[1] + 5 > seqs[0] + 10
    for number, one in enumerate(copies):
        new = kept / f"new{number}"
        await to_thread.run_sync(restored, one.file, new)
        async with open_app(Home(new), {}) as parts:
            found = await verify(parts)
        assert found.findings == ()


def test_checkpoints_outside_the_home_that_know_more_are_believed(
    made: Home, kept: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.jsonl"
    with made.config_file.open("a") as config:
        config.write(f'\n[audit]\ncheckpoint_file = "{outside}"\n')
    backup = backed_up(made, kept)
    assert backup.left_out == (f"{outside} lies outside the home",)
    backed_up(made, kept / "later.tar.gz")
    restored(backup.file, made.path)
    _, found = checked(made.path)
    assert "cut" in {finding.kind for finding in found.findings}


def test_links_and_pipes_in_a_workspace_take_nothing_along(
    made: Home, kept: Path, tmp_path: Path
) -> None:
    (tmp_path / "foreign").write_text("somebody else's")
    space = made.workspace("key-admin")
    (space / "out").symlink_to(tmp_path / "foreign")
    (space / "folder").symlink_to("/etc")
    os.mkfifo(space / "pipe")
    backup = backed_up(made, kept)
    assert len(backup.left_out) == 3
    new = Home(restored(backup.file, tmp_path / "new").home).workspace("key-admin")
    assert sorted(path.name for path in new.iterdir()) == ["again", "note"]


@pytest.mark.requirement("C2.1")
def test_a_configuration_that_is_kept_elsewhere_is_copied(
    made: Home, kept: Path, tmp_path: Path
) -> None:
    text = made.config_file.read_text()
    made.config_file.rename(tmp_path / "dotfile")
    made.config_file.symlink_to(tmp_path / "dotfile")
    (made.path / "more.toml").write_text('log_level = "error"\n')
    (tmp_path / "far.toml").write_text("[limits]\nburst = 7\n")
    (tmp_path / "dotfile").write_text(f'include = ["more.toml", "../far.toml"]\n{text}')
    backup = backed_up(made, kept)
    assert backup.left_out == (f"{made.path}/../far.toml lies outside the home",)
    new = restored(backup.file, tmp_path / "new").home
    assert not (new / "config.toml").is_symlink()
    assert "more.toml" in (new / "config.toml").read_text()
    assert (new / "more.toml").exists()


@pytest.mark.parametrize("where", ["copy.tar.gz", "workspaces/copy.tar.gz", "agents"])
def test_a_backup_inside_the_home_is_refused(made: Home, where: str) -> None:
    with pytest.raises(HomeError, match="would lie in the home"):
        backed_up(made, made.path / where)


@pytest.mark.parametrize("database", ["../far.db", "linked/far.db"])
def test_a_database_outside_the_home_is_refused(
    made: Home, kept: Path, tmp_path: Path, database: str
) -> None:
    (tmp_path / "disk").mkdir()
    (made.path / "linked").symlink_to(tmp_path / "disk")
    (made.path / "openfang.db").rename(made.path / database)
    with made.config_file.open("a") as config:
        config.write(f'\n[storage]\nurl = "sqlite:{database}"\n')
    with pytest.raises(HomeError, match="lies outside the home"):
        backed_up(made, kept)
    assert not list(kept.iterdir())


@pytest.mark.requirement("C7.7")
async def test_only_an_administrator_makes_a_backup(made: Home, kept: Path) -> None:
    text = await anyio.Path(made.config_file).read_text()
    await anyio.Path(made.config_file).write_text(f'api_key = "a-plain-key"\n{text}')
    with pytest.raises(OpenFangError) as caught:
        await back_up(made, {"OPENFANG_API_KEY": "a-plain-key"}, str(kept))
    assert caught.value.code == "policy_violation"
    assert not await to_thread.run_sync(lambda: list(kept.iterdir()))


def until(seen: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not seen():
        assert time.monotonic() < deadline
        time.sleep(0.01)


async def test_a_backup_that_is_cancelled_leaves_nothing(made: Home, kept: Path) -> None:
    def sparse() -> None:
        with (made.path / "workspaces/huge").open("wb") as file:
            file.truncate(20_000_000_000)

    await to_thread.run_sync(sparse)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(partial(back_up, made, {}, str(kept)))
            await to_thread.run_sync(until, lambda: list(kept.glob(".*/archive")))
            group.cancel_scope.cancel()
    assert not await to_thread.run_sync(lambda: list(kept.iterdir()))
    noted = await to_thread.run_sync(records, made.path, "home_backup")
    assert [record["state"] for record in noted] == ["started", "failed"]


def repacked(file: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """Change what is in an archive, and pack it as `backup` does."""
    with tarfile.open(file) as archive:
        infos = {info.name: info for info in archive.getmembers()}
        contents = {
            name: archive.extractfile(info).read()  # pyright: ignore[reportOptionalMemberAccess]
            for name, info in infos.items()
            if info.isreg()
        }
    change(contents)
    changed = file.with_name("changed.tar.gz")
    with tarfile.open(changed, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for info in infos.values():
            if not info.isreg():
                archive.addfile(info)
        for name, content in contents.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return changed


def in_manifest(**fields: object) -> Callable[[dict[str, bytes]], None]:
    def change(contents: dict[str, bytes]) -> None:
        body = {**json.loads(contents[MANIFEST]), **fields}
        contents[MANIFEST] = json.dumps(body).encode()

    return change


def in_members(**contents: bytes | None) -> Callable[[dict[str, bytes]], None]:
    def change(found: dict[str, bytes]) -> None:
        for name, content in contents.items():
            if content is None:
                del found[name]
            else:
                found[name] = content

    return change


def replaced(contents: dict[str, bytes], database: bytes) -> None:
    """Put in another database, and say so in the manifest."""
    contents["openfang.db"] = database
    members = json.loads(contents[MANIFEST])["members"]
    digest = hashlib.sha256(database).hexdigest()
    in_manifest(members={**members, "openfang.db": digest})(contents)


TAMPERED: dict[str, Callable[[dict[str, bytes]], None]] = {
    "a member was changed": in_members(key=b"of_another\n"),
    "a member was added": in_members(more=b"x"),
    "a member is missing": in_members(key=None),
    "there is no manifest": in_members(**{MANIFEST: None}),
    "the manifest is no JSON": lambda contents: contents.update({MANIFEST: b"{"}),
    "the manifest is a list": lambda contents: contents.update({MANIFEST: b"[]"}),
    "the manifest lacks a field": lambda contents: contents.update({MANIFEST: b'{"format": 1}'}),
    "a digest is no text": in_manifest(members={"key": 1}),
    "the head is another": in_manifest(seq=99),
    "the hash is another": in_manifest(hash="00" * 32),
    "the node is another": in_manifest(node="node-other"),
    "the schema is another": in_manifest(schema=0),
    "the database lies above": in_manifest(database="../evil.db"),
    "the database is a folder": in_manifest(database="workspaces"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_backup_that_was_tampered_with_changes_nothing(
    name: str, made: Home, kept: Path, tmp_path: Path
) -> None:
    changed = repacked(backed_up(made, kept).file, TAMPERED[name])
    before = made.key_file.read_bytes()
    with pytest.raises(ArchiveRefused):
        restored(changed, made.path)
    assert made.key_file.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backups", "home"]


def test_a_backup_that_was_only_packed_again_is_taken(made: Home, kept: Path) -> None:
    changed = repacked(backed_up(made, kept).file, lambda _: None)
    restored(changed, made.path)
    assert checked(made.path)[1].intact


@pytest.mark.requirement("C2.6")
@pytest.mark.parametrize("what", ["schema", "format"])
def test_a_backup_of_a_newer_version_is_refused(made: Home, kept: Path, what: str) -> None:
    if what == "schema":
        backup = backed_up(made, kept)

        def newer(contents: dict[str, bytes]) -> None:
            file = kept / "newer.db"
            file.write_bytes(contents["openfang.db"])
            with closing(sqlite3.connect(file, isolation_level=None)) as database:
                database.execute("INSERT INTO migrations VALUES (999, 0)")
            replaced(contents, file.read_bytes())
            in_manifest(schema=999)(contents)

        changed = repacked(backup.file, newer)
    else:
        changed = repacked(backed_up(made, kept).file, in_manifest(format=2))
    with pytest.raises(HomeError, match="newer version") as caught:
        restored(changed, made.path)
    assert caught.value.way_out == "upgrade openfang"
    assert checked(made.path)[1].intact


def test_a_torn_file_is_refused(made: Home, kept: Path, tmp_path: Path) -> None:
    file = backed_up(made, kept).file
    whole = file.read_bytes()
    for size in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:size])
        with pytest.raises(ArchiveRefused):
            restored(file, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    with pytest.raises(NotFound):
        restored(kept / "none", tmp_path / "new")
    for place in (kept, Path("/dev/null")):
        with pytest.raises(HomeError):
            restored(place, tmp_path / "new")


_HOLDS = """
import fcntl, os, sys
file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
if sys.argv[2] == "locked":
    fcntl.flock(file, fcntl.LOCK_EX)
    os.write(file, str(os.getpid()).encode())
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("file", "how"),
    [("run/daemon.lock", "locked"), ("run/some.lock", "locked"), ("openfang.db", "open")],
)
def test_a_home_in_use_is_not_restored(made: Home, kept: Path, file: str, how: str) -> None:
    backup = backed_up(made, kept)
    (made.path / "run").mkdir(exist_ok=True)
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDS, made.path / file, how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout
    holder.stdout.readline()
    try:
        with pytest.raises(Conflict, match=f"{holder.pid}") as caught:
            restored(backup.file, made.path)
    finally:
        holder.communicate()
    assert "openfang stop" in caught.value.way_out
    assert restored(backup.file, made.path).aside
    assert checked(made.path)[1].intact


def test_two_restores_of_one_home_do_not_meet(made: Home, kept: Path) -> None:
    backup = backed_up(made, kept)
    handle = os.open(made.path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with pytest.raises(Conflict, match="another command"):
            restored(backup.file, made.path)
    finally:
        os.close(handle)


def test_a_home_that_is_a_file_is_not_replaced(made: Home, kept: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(HomeError, match="no folder"):
        restored(backed_up(made, kept).file, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_folder_that_is_no_home_is_not_moved_aside(
    made: Home, kept: Path, tmp_path: Path
) -> None:
    backup = backed_up(made, kept)
    (tmp_path / "documents").mkdir()
    assert restored(backup.file, tmp_path / "documents").aside is None
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos/one.jpg").touch()
    with pytest.raises(HomeError, match="no OpenFang home"):
        restored(backup.file, tmp_path / "photos")
    assert [path.name for path in (tmp_path / "photos").iterdir()] == ["one.jpg"]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE audit SET hash = 'text'",
        "UPDATE audit SET seq = 9000000000000000000 WHERE seq = 1",
        "DROP TABLE migrations",
        "DROP TABLE audit",
        "ALTER TABLE settings RENAME TO unset",
        "UPDATE settings SET value = x'00'",
    ],
)
def test_a_database_that_was_made_up_is_refused(made: Home, kept: Path, change: str) -> None:
    def make_up(contents: dict[str, bytes]) -> None:
        file = kept / "made_up.db"
        file.write_bytes(contents["openfang.db"])
        with closing(sqlite3.connect(file, isolation_level=None)) as database:
            database.execute(change)
        replaced(contents, file.read_bytes())

    changed = repacked(backed_up(made, kept).file, make_up)
    with pytest.raises(HomeError):
        restored(changed, made.path)
    assert checked(made.path)[1].intact


def test_a_restore_killed_anywhere_leaves_the_old_home_or_the_new_one(
    made: Home, kept: Path, tmp_path: Path
) -> None:
    backup = backed_up(made, kept)
    (made.workspace("key-admin") / "note").write_text("changed since")
    done = subprocess.run(
        [sys.executable, HERE / "killed_restore.py", backup.file, made.path, tmp_path / "killed"],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout)
    assert {one["note"] for one in found} == {"as it was", "changed since"}
    assert all(one["intact"] and one["caller"] == "key:admin" for one in found)
    assert sum(one["code"] == -9 for one in found) >= 15
    # Killed after the homes changed places: the old one is still there, under either name.
    assert all(len(one["beside"]) == 2 for one in found if one["note"] == "as it was")


@pytest.mark.needs("unshare", "mount")
def test_on_a_full_disk_nothing_is_left_of_a_backup_and_a_home_stays(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "-m"]
    script = [sys.executable, str(HERE / "on_a_full_disk.py"), str(tmp_path), f"{tmp_path}/disk"]
    done = subprocess.run([*unshare, *script], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    seen = json.loads(done.stdout)
    assert "No space left on device" in seen["backup"]["message"]
    assert "free some space" in seen["backup"]["way_out"]
    assert seen["left"] == []
    assert "room" in seen["restore"]["message"]
    assert seen["kept"] == [["home"], "kept"]


def test_what_a_killed_backup_left_does_not_hinder_the_next(made: Home, kept: Path) -> None:
    shutil.copytree(made.path, kept / ".openfang-backup-abc")
    backup = backed_up(made, kept)
    assert checked(restored(backup.file, made.path).home)[1].intact


@pytest.mark.requirement("C6.4")
def test_no_run_of_an_agent_goes_on_from_a_backup(made: Home, kept: Path, tmp_path: Path) -> None:
    async def begin() -> None:
        async with open_app(made, {}) as parts:
            sessions = StoredSessions(
                database=parts.database, writer=parts.writer, process=parts.broker.process
            )
            talk = await sessions.open("writer", "key:admin", "default", most=20)
            message = Message(speaker=Speaker.USER, text="write")
            await sessions.begin(talk.id, "run", message, Labels.PII)

    anyio.run(begin)
    done = restored(backed_up(made, kept).file, tmp_path / "new")
    with closing(sqlite3.connect(done.home / "openfang.db")) as database:
        assert database.execute("SELECT state, ending FROM agent_runs").fetchall() == [
            ("ended", "failed")
        ]
        assert database.execute("SELECT labels FROM sessions").fetchall() == [(int(Labels.PII),)]
    with closing(sqlite3.connect(made.path / "openfang.db")) as database:
        assert database.execute("SELECT state FROM agent_runs").fetchall() == [("running",)]
