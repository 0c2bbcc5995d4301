"""The SQLite file of a home: opening it, bringing its schema up to date, reading from it."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing, contextmanager, suppress
from functools import cache, partial
from hashlib import sha256
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeVar

from anyio import CapacityLimiter, to_thread

from openfang.core.errors import HomeError
from openfang.core.log import QUERY_ROWS
from openfang.storage.upgrade import keep_copy
from openfang.storage.words import indexed

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
    from pathlib import Path

    from openfang.core.log import Table
    from openfang.storage.ports import Dialect, Hear, Look

T = TypeVar("T")
Row = TypeVar("Row", bound=tuple[Any, ...])
BUSY_SECONDS = 5.0
_READERS = 2
_PAGE_SIZE = 2048
_BESIDE = 65_536
_LARGEST_BESIDE = 64_000_000
_RESTORE = "restore a backup of the home, or move the file away and run: openfang init"


class Database:
    """One connection. `patience` is how long it waits for another process's lock."""

    dialect: Dialect = "sqlite"

    def __init__(self, path: Path, *, patience: float = 0.0, durable: bool = False) -> None:
        self.path = path
        self._patience = patience
        self._readers: CapacityLimiter | None = None
        with explained(path):
            self.connection = sqlite3.connect(
                path,
                timeout=patience,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=512,
            )
            self._configure(durable=durable)

    def _configure(self, *, durable: bool) -> None:
        execute = self.connection.execute
        execute(f"PRAGMA page_size = {_PAGE_SIZE}")
        execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")
        execute("PRAGMA journal_mode = WAL")
        execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        execute("PRAGMA wal_autocheckpoint = 0")
        execute(f"PRAGMA journal_size_limit = {_LARGEST_BESIDE}")

    def patience(self, seconds: float) -> None:
        """Set how long a statement waits for a lock that another connection holds."""
        self._patience = seconds
        self.connection.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")

    async def read(
        self, sql: str, parameters: Sequence[Any] = (), *, most: int | None = None
    ) -> list[tuple[Any, ...]]:
        """Run one short query. It is not waited for: the event loop does not go round."""
        return self.read_now(sql, parameters, most=most)

    def read_now(
        self, sql: str, parameters: Sequence[Any] = (), *, most: int | None = None
    ) -> list[tuple[Any, ...]]:
        """Run one short query. With `most` it ends after the row that brings so many characters."""
        try:
            return self._read_now(sql, parameters, most)
        except sqlite3.Error as error:
            if self._patience or not is_busy(error):
                raise explain(self.path, error) from error
        return self._read_patiently(sql, parameters, most)

    def _read_patiently(
        self, sql: str, parameters: Sequence[Any], most: int | None
    ) -> list[tuple[Any, ...]]:
        """Wait for a lock, on a connection whose writer does not."""
        self.patience(BUSY_SECONDS)
        try:
            with explained(self.path):
                return self._read_now(sql, parameters, most)
        finally:
            self.patience(0)

    def _read_now(
        self, sql: str, parameters: Sequence[Any], most: int | None
    ) -> list[tuple[Any, ...]]:
        with closing(self.connection.execute(sql, parameters)) as cursor:
            return cursor.fetchall() if most is None else up_to(cursor, most)

    async def aside(self, look: Look[T], turns: CapacityLimiter | None = None) -> T:
        """Look in a thread, on a connection of its own; few do so at once."""
        return await self._in_thread(partial(looked, self.path, look), turns)

    async def query(self, sql: str, *, limit: int = QUERY_ROWS) -> list[Table]:
        """Run queries of the operator's own, in a thread."""
        from openfang.storage.queries import query  # noqa: PLC0415 - it needs this module

        return await self._in_thread(partial(query, self.path, sql, limit=limit), None)

    def on(self, topic: str, hear: Hear) -> bool:
        """Nobody tells: other processes on this file are seen by looking."""
        del topic, hear
        return False

    def tell(self, topic: str, subject: str) -> None:
        """Nobody hears."""

    async def _in_thread(self, work: Callable[[], T], turns: CapacityLimiter | None) -> T:
        if turns is None:
            turns = self._readers = self._readers or CapacityLimiter(_READERS)
        return await to_thread.run_sync(work, abandon_on_cancel=True, limiter=turns)

    def close(self) -> None:
        """Give the file back."""
        self.connection.close()

    async def aclose(self) -> None:
        """Do the same, as every database can be told."""
        self.close()


def looked(path: Path, look: Look[T]) -> T:
    """Look on a connection of one's own. Blocks: it is for a thread."""
    with closing(Database(path, patience=BUSY_SECONDS)) as database:
        return at_once(look(database))


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """Do what awaits nothing but a database file, and so never waits: outside of an event loop."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    work.close()
    raise RuntimeError("what was to be done at once waits for something")


def up_to(rows: Iterable[Row], most: int) -> list[Row]:
    """Stop after the row that brings so many characters."""
    found, size = list[Row](), 0
    for row in rows:
        found.append(row)
        for value in row:
            if isinstance(value, (str, bytes)):
                size += len(value)
        if size > most:
            break
    return found


def open_home(path: Path, *, durable: bool = False) -> Database:
    """Open the database of a home with its schema up to date. It is its owner's alone."""
    # Only a file that is new: closing a handle would drop the locks of our own connections to it.
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    database = Database(path, patience=BUSY_SECONDS, durable=durable)
    try:
        with explained(path):
            _migrate(database.connection, path)
    except BaseException:
        database.close()
        raise
    return database


@cache
def migrations(dialect: str = "sqlite") -> list[tuple[int, str]]:
    """Numbered scripts of one dialect; `0001.postgres.sql` stands in where the dialects differ."""
    folder = resources.files("openfang.storage") / "migrations"
    texts: dict[int, str] = {}
    for file in sorted(folder.iterdir(), key=lambda entry: len(entry.name)):
        number, *variant = file.name.removesuffix(".sql").split(".")
        if file.name.endswith(".sql") and variant in ([], [dialect]):
            texts[int(number)] = file.read_text()
    return sorted(texts.items())


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    known = migrations()
    if _version(connection) == known[-1][0]:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)
        _refuse_newer(version, known[-1][0])
        if 0 < version < known[-1][0]:
            keep_copy(path, version)
        _apply(connection, known, version)
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _refuse_newer(version: int, known: int) -> None:
    if version > known:
        raise HomeError(
            f"The home was written by a newer version (schema {version}, this one knows {known}).",
            way_out="upgrade openfang, or use another OPENFANG_HOME",
        )


def _apply(connection: sqlite3.Connection, known: list[tuple[int, str]], version: int) -> None:
    connection.execute(
        "CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, applied_at INTEGER)"
    )
    # SQLite has neither of its own; Postgres has the one, and can be told the other.
    connection.create_function("sha256", 1, _sha256, deterministic=True)
    connection.create_function("words_of", 2, indexed, deterministic=True)
    for number, script in known:
        if number > version:
            with _upgrading(version, number):
                for statement in split_statements(script):
                    connection.execute(statement)
            connection.execute("INSERT INTO migrations VALUES (?, ?)", (number, time.time_ns()))


@contextmanager
def _upgrading(version: int, number: int) -> Generator[None]:
    """Say of a change that the database does not take that nothing was changed."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:  # a full disk, a lock: told as such
            raise
        raise _not_upgraded(version, number, error) from error
    except sqlite3.IntegrityError as error:
        raise _not_upgraded(version, number, error) from error


def _not_upgraded(version: int, number: int, error: sqlite3.Error) -> HomeError:
    return HomeError(
        f"The home could not be upgraded from schema {version}: change {number} fails ({error}). "
        "It is as it was.",
        way_out="go on with the version of openfang from before, and report this",
    )


def _sha256(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


def _version(connection: sqlite3.Connection) -> int:
    exists = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").fetchone()
    if not exists:
        return 0
    return int(connection.execute("SELECT MAX(number) FROM migrations").fetchone()[0] or 0)


def split_statements(script: str) -> list[str]:
    """Cut a migration at its semicolons; one on an indented line is inside of a function."""
    statements, lines = list[str](), list[str]()
    for line in script.splitlines():
        if line.lstrip().startswith("--"):
            continue
        lines.append(line.rstrip())
        if line.rstrip().endswith(";") and not line.startswith(" "):
            statements.append("\n".join(lines).strip().removesuffix(";"))
            lines.clear()
    return statements


def _has_room(path: Path) -> bool:
    """Whether there is room for what SQLite makes beside a database before it reads it."""
    disk = os.statvfs(path.parent)
    return disk.f_bavail * disk.f_frsize > _BESIDE


@contextmanager
def explained(path: Path) -> Generator[None]:
    """Say what SQLite's errors mean for the person who owns the home."""
    try:
        yield
    except sqlite3.Error as error:
        raise explain(path, error) from error


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection was in the way."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
    }


def explain(path: Path, error: sqlite3.Error) -> HomeError:
    """Translate an error of the database into a sentence and a way out."""
    text = str(error)
    if "readonly" in text or "read-only" in text or "unable to open" in text:
        return HomeError(
            f"The database {path} cannot be opened for writing ({text}).",
            way_out="make the home writable, or set OPENFANG_HOME to a folder that is",
        )
    if "closed database" in text:
        return HomeError("The home was closed meanwhile.", way_out="open it again")
    if "full" in text or ("I/O" in text and not _has_room(path)):
        return HomeError(f"The disk of {path} is full.", way_out="free some space; nothing is lost")
    if "I/O" in text:
        return HomeError(
            f"The disk of {path} fails ({text}).", way_out="see what the system's log says of it"
        )
    if "locked" in text or "busy" in text:
        return HomeError(
            f"The database {path} is locked by another process for more than {BUSY_SECONDS:g} s.",
            way_out="see who holds it with: openfang doctor",
        )
    return HomeError(f"The database {path} is damaged ({text}).", way_out=_RESTORE)
