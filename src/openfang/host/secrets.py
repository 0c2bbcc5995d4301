"""The home's master key, what is derived from it, and the secrets that are encrypted under it.

The key lies in a file of its own that only its owner can read, or in the system's keyring. Calls
block on files: run them in a thread. `cryptography` is imported where it is used: checking an API
key needs only the standard library.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
import stat
from contextlib import contextmanager, suppress
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, cast

from openfang.core.errors import HomeError, NotFound
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_KEY_FILE: Final = "master.key"
_STORE_FILE: Final = "secrets.json"
_LOCK_FILE: Final = "secrets.lock"
_SERVICE: Final = "openfang"
_NAME = re.compile(r"\A[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}\Z")
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class SecretsError(HomeError):
    """The master key or the encrypted store cannot be used as it is."""

    code = "secrets"


@dataclass(frozen=True, slots=True)
class MasterKey:
    """32 random bytes that never leave the process; everything else is derived."""

    _bytes: bytes = field(repr=False)

    @classmethod
    def open(cls, home: Path, *, keyring: bool = False) -> MasterKey:
        """Read the home's key, and make it the first time."""
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SecretsError(f"{home} cannot be made: {error.strerror}") from error
        return cls(_from_keyring(home) if keyring else _from_file(home / _KEY_FILE))

    def derive(self, purpose: str) -> bytes:
        """Derive 32 bytes for one purpose (HKDF-SHA256, RFC 5869; one block is enough)."""
        extracted = hmac.digest(bytes(hashlib.sha256().digest_size), self._bytes, "sha256")
        return hmac.digest(extracted, f"openfang/{purpose}".encode() + b"\x01", "sha256")

    def signing_key(self) -> Ed25519PrivateKey:
        """Give the node's own key to sign with: the same for the life of the home."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 - start-up time
            Ed25519PrivateKey,
        )

        return Ed25519PrivateKey.from_private_bytes(self.derive("node-signing"))


def _from_file(path: Path) -> bytes:
    with suppress(FileNotFoundError):
        return _read_key(path)
    _create_key(path)
    return _read_key(path)


def _create_key(path: Path) -> None:
    """Write the key under a name of our own, then link it: whoever links first has made the key."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        _write_private(temporary, secrets.token_bytes(KEY_BYTES))
        with suppress(FileExistsError):
            os.link(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        raise SecretsError(f"The master key {path} could not be made: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _read_key(path: Path) -> bytes:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SecretsError(f"The master key {path} cannot be read: {error.strerror}") from error
    try:
        _check_private(path, os.fstat(file))
        key = os.read(file, KEY_BYTES + 1)
    finally:
        os.close(file)
    if len(key) != KEY_BYTES:
        raise SecretsError(
            f"The master key {path} has {len(key)} bytes instead of {KEY_BYTES}",
            way_out="restore it from a backup: what it encrypted cannot be read without it",
        )
    return key


def _check_private(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise SecretsError(f"The master key {path} is not a regular file")
    if found.st_uid != os.geteuid():
        raise SecretsError(
            f"The master key {path} belongs to user {found.st_uid}, not to {os.geteuid()}",
            way_out=f"chown {os.geteuid()} {path}",
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise SecretsError(
            f"The master key {path} can be read by others (mode {stat.S_IMODE(found.st_mode):o})",
            way_out=f"chmod 600 {path}",
        )


def _from_keyring(home: Path) -> bytes:
    """Keep the key in the system's keyring, under the home's path; the lock lets the first win."""
    try:
        import keyring  # noqa: PLC0415 - an optional extra
        from keyring.errors import KeyringError  # noqa: PLC0415 - as above
    except ImportError as error:
        raise SecretsError(
            "[secrets] keyring is chosen, but the keyring library is not installed",
            way_out="pip install 'openfang[keyring]', or set [secrets] keyring = false",
        ) from error
    user = str(home.resolve())
    try:
        with _locked(home):
            if keyring.get_password(_SERVICE, user) is None:
                keyring.set_password(_SERVICE, user, secrets.token_hex(KEY_BYTES))
            stored = keyring.get_password(_SERVICE, user)
    except KeyringError as error:
        raise SecretsError(
            f"The system's keyring cannot be used: {error}",
            way_out="unlock it, or set [secrets] keyring = false",
        ) from error
    return _from_hex(stored or "")


def _from_hex(text: str) -> bytes:
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise SecretsError("The system's keyring holds something that is not a master key")
    return key


@dataclass(frozen=True, slots=True)
class SecretStore:
    """Named secrets in one file: AES-256-GCM, each bound to its name. Safe for many processes."""

    home: Path
    key: MasterKey

    def set(self, name: str, value: str) -> None:
        """Store or replace a secret."""
        sealed = self._seal(_checked(name), value)
        with _locked(self.home):
            self._write({**self._read(), name: sealed})

    def replace(self, name: str, value: str) -> bool:
        """Put another value in the place of a secret, if it is still there; say whether it was."""
        sealed = self._seal(_checked(name), value)
        with _locked(self.home):
            held = self._read()
            if name in held:
                self._write({**held, name: sealed})
            return name in held

    def get(self, name: str) -> str:
        """Read a secret."""
        sealed = self._read().get(name)
        if sealed is None:
            raise _unknown(name)
        return self._open(name, sealed)

    def delete(self, name: str) -> None:
        """Remove a secret."""
        with _locked(self.home):
            held = dict(self._read())
            if held.pop(name, None) is None:
                raise _unknown(name)
            self._write(held)

    def names(self) -> list[str]:
        """List the names, in order; no value is decrypted."""
        return sorted(self._read())

    @property
    def path(self) -> Path:
        """The file that holds them."""
        return self.home / _STORE_FILE

    @property
    def _key_id(self) -> str:
        return self.key.derive("secrets-key-id")[:8].hex()

    def _seal(self, name: str, value: str) -> str:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - start-up time

        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = AESGCM(self.key.derive("secrets")).encrypt(nonce, value.encode(), name.encode())
        return base64.b64encode(nonce + sealed).decode()

    def _open(self, name: str, sealed: str) -> str:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - start-up time
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - as above

        try:
            raw = base64.b64decode(sealed, validate=True)
            nonce, rest = raw[:_NONCE_BYTES], raw[_NONCE_BYTES:]
            return AESGCM(self.key.derive("secrets")).decrypt(nonce, rest, name.encode()).decode()
        except (InvalidTag, ValueError) as error:
            raise SecretsError(
                f"The secret {name!r} in {self.path} is not as it was stored: it was changed",
                way_out=f"restore {self.path.name} from a backup, or move it away",
            ) from error

    def _read(self) -> Mapping[str, str]:
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise SecretsError(f"{self.path} cannot be read: {error.strerror}") from error
        key_id, held = _parse(self.path, text)
        if not hmac.compare_digest(key_id, self._key_id):
            raise SecretsError(
                f"{self.path} was encrypted under another master key ({key_id})",
                way_out=f"restore the {_KEY_FILE} that belongs to it, or move the file away",
            )
        return held

    def _write(self, held: Mapping[str, str]) -> None:
        document = {"key": self._key_id, "secrets": dict(sorted(held.items()))}
        temporary = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}")
        try:
            _write_private(temporary, json.dumps(document, indent=1).encode())
            temporary.replace(self.path)
            _sync_folder(self.home)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise SecretsError(f"{self.path} cannot be written: {error.strerror}") from error


def _parse(path: Path, text: bytes) -> tuple[str, Mapping[str, str]]:
    try:
        document = cast("dict[str, Any]", json.loads(text))
        held = cast("dict[str, Any]", document["secrets"])
        return str(document["key"]), {str(name): str(value) for name, value in held.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SecretsError(
            f"{path} is not a store of secrets", way_out="restore it from a backup, or move it away"
        ) from error


def _checked(name: str) -> str:
    if not _NAME.match(name):
        raise SecretsError(
            f"{name!r} cannot be the name of a secret",
            way_out="use letters, digits and _ . : / - (128 at most)",
        )
    return name


def _unknown(name: str) -> NotFound:
    return NotFound(f"There is no secret {name!r}", way_out="store it under this name first")


def _write_private(path: Path, data: bytes) -> None:
    with os.fdopen(os.open(path, _CREATE, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    """Make a new name in the folder survive a power cut."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def _locked(home: Path) -> Generator[None]:
    """Hold the one lock of the home's secrets; the kernel releases it with its holder."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        file = os.open(home / _LOCK_FILE, flags, 0o600)
    except OSError as error:
        raise SecretsError(f"{home / _LOCK_FILE} cannot be opened: {error.strerror}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
