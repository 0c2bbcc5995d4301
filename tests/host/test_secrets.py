from __future__ import annotations

import base64
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import keyring
import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given, settings
from hypothesis import strategies as st
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError

import openfang
from openfang.core.errors import HomeError, NotFound
from openfang.host.secrets import KEY_BYTES, MasterKey, SecretsError, SecretStore

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.requirement("C18.3")

SOURCES = str(Path(openfang.__path__[0]).parent)


@pytest.fixture
def store(home: Path) -> SecretStore:
    return SecretStore(home, MasterKey.open(home))


def processes(script: str, *arguments: str, count: int = 10) -> list[str]:
    """Run the same script in several processes at once, and give what each printed."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", script, *arguments, str(number)],
            env={"PYTHONPATH": SOURCES, "PATH": os.defpath},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(count)
    ]
    for one in started:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in started:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    outputs = [one.communicate(timeout=30)[0] for one in started]
    assert [one.returncode for one in started] == [0] * count
    return outputs


def test_a_key_is_made_once_for_its_owner_alone(home: Path) -> None:
    first, again = MasterKey.open(home), MasterKey.open(home)
    assert first == again
    assert stat.S_IMODE((home / "master.key").stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert [entry.name for entry in home.iterdir()] == ["master.key"]
    assert MasterKey.open(home.with_name("other")) != first


def test_a_key_does_not_show_itself(home: Path) -> None:
    key = MasterKey.open(home)
    written = (home / "master.key").read_bytes()
    assert len(written) == KEY_BYTES
    assert repr(key) == "MasterKey()"


OPEN_KEY = """
import sys
from pathlib import Path
from openfang.host.secrets import MasterKey
print("ready", flush=True)
sys.stdin.readline()
print(MasterKey.open(Path(sys.argv[1])).derive("test").hex())
"""


def test_ten_processes_that_make_the_key_at_once_have_one_key(home: Path) -> None:
    assert len(set(processes(OPEN_KEY, str(home)))) == 1
    assert [entry.name for entry in home.iterdir()] == ["master.key"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o602, 0o644])
def test_a_key_that_others_can_read_is_refused(home: Path, mode: int) -> None:
    MasterKey.open(home)
    (home / "master.key").chmod(mode)
    with pytest.raises(SecretsError) as refused:
        MasterKey.open(home)
    assert refused.value.way_out == f"chmod 600 {home / 'master.key'}"
    assert refused.value.code == "secrets"
    assert isinstance(refused.value, HomeError)


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a file away needs root")
def test_a_key_of_another_user_is_refused(home: Path) -> None:
    MasterKey.open(home)
    os.chown(home / "master.key", 12345, -1)
    with pytest.raises(SecretsError, match="12345"):
        MasterKey.open(home)


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 33])
def test_a_key_of_the_wrong_length_is_refused_and_kept(home: Path, content: bytes) -> None:
    MasterKey.open(home)
    (home / "master.key").write_bytes(content)
    with pytest.raises(SecretsError, match=str(len(content))):
        MasterKey.open(home)
    assert (home / "master.key").read_bytes() == content


@pytest.mark.timeout(10)
def test_a_key_that_is_not_a_file_is_refused(home: Path) -> None:
    home.mkdir()
    key = home / "master.key"
    key.symlink_to("elsewhere")
    with pytest.raises(SecretsError):
        MasterKey.open(home)
    key.unlink()
    os.mkfifo(key, 0o600)
    with pytest.raises(SecretsError, match="regular"):
        MasterKey.open(home)


def test_a_home_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SecretsError, match="file"):
        MasterKey.open(tmp_path / "file" / "home")


@settings(max_examples=30)
@given(st.binary(min_size=32, max_size=32), st.text(max_size=20).filter(str.isascii))
def test_derivation_is_hkdf_and_differs_by_purpose(material: bytes, purpose: str) -> None:
    key = MasterKey(material)
    expected = HKDF(SHA256(), 32, None, f"openfang/{purpose}".encode()).derive(material)
    assert key.derive(purpose) == expected
    assert key.derive(purpose) != key.derive(purpose + "x")


def test_the_signing_key_is_the_same_for_the_life_of_the_home(home: Path) -> None:
    signature = MasterKey.open(home).signing_key().sign(b"checkpoint")
    MasterKey.open(home).signing_key().public_key().verify(signature, b"checkpoint")


def test_secrets_are_kept_replaced_and_removed(store: SecretStore) -> None:
    assert store.names() == []
    store.set("GITHUB_TOKEN", "first")
    store.set("a", "\u00fcber")
    store.set("GITHUB_TOKEN", "second")
    reopened = SecretStore(store.home, MasterKey.open(store.home))
    assert reopened.names() == ["GITHUB_TOKEN", "a"]
    assert (reopened.get("GITHUB_TOKEN"), reopened.get("a")) == ("second", "\u00fcber")
    reopened.delete("a")
    assert store.names() == ["GITHUB_TOKEN"]
    for act in (store.get, store.delete):
        with pytest.raises(NotFound, match="'a'"):
            act("a")


def test_a_secret_is_not_on_disk_in_the_clear(store: SecretStore) -> None:
    store.set("token", "canary-in-the-mine")
    written = b"".join(file.read_bytes() for file in store.home.iterdir())
    for form in (b"canary", base64.b64encode(b"canary-in-the-mine")[:12]):
        assert form not in written
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert "canary" not in repr(store)


def test_the_same_secret_is_never_encrypted_alike(store: SecretStore) -> None:
    store.set("a", "same")
    first = _held(store)["a"]
    store.set("a", "same")
    assert _held(store)["a"] != first


def test_another_master_key_is_told_from_tampering(store: SecretStore) -> None:
    store.set("a", "x")
    (store.home / "master.key").unlink()
    other = SecretStore(store.home, MasterKey.open(store.home))
    for act in (lambda: other.get("a"), other.names, lambda: other.set("b", "y")):
        with pytest.raises(SecretsError, match="another master key"):
            act()
    assert store.get("a") == "x"


@pytest.mark.parametrize("position", [0, 11, 12, 20, -1])
def test_a_changed_byte_is_noticed(store: SecretStore, position: int) -> None:
    store.set("a", "a long enough secret")
    raw = bytearray(base64.b64decode(_held(store)["a"]))
    raw[position] ^= 1
    _put(store, a=base64.b64encode(raw).decode())
    with pytest.raises(SecretsError, match="changed"):
        store.get("a")


def test_a_secret_under_another_name_is_noticed(store: SecretStore) -> None:
    store.set("harmless", "1")
    store.set("root_password", "2")
    held = _held(store)
    _put(store, harmless=held["root_password"], root_password=held["harmless"])
    for name in store.names():
        with pytest.raises(SecretsError):
            store.get(name)


@pytest.mark.parametrize("value", ["", "AAAA", "not base64!", "\u00e9"])
def test_what_is_no_ciphertext_is_noticed(store: SecretStore, value: str) -> None:
    store.set("a", "x")
    _put(store, a=value)
    with pytest.raises(SecretsError):
        store.get("a")


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"key": "x"}', b'{"key": 1, "secrets": 2}', b"\xff"]
)
def test_a_broken_store_is_named_and_kept(store: SecretStore, content: bytes) -> None:
    store.path.write_bytes(content)
    for act in (store.names, lambda: store.get("a"), lambda: store.set("a", "b")):
        with pytest.raises(SecretsError, match=r"secrets\.json"):
            act()
    assert store.path.read_bytes() == content


@pytest.mark.parametrize("name", ["", " ", "a b", "-a", "\u00e9", "a" * 129, "a\n"])
def test_a_name_that_is_none_is_refused(store: SecretStore, name: str) -> None:
    with pytest.raises(SecretsError):
        store.set(name, "x")


SET_MANY = """
import sys
from pathlib import Path
from openfang.host.secrets import MasterKey, SecretStore
home, number = Path(sys.argv[1]), sys.argv[2]
store = SecretStore(home, MasterKey.open(home))
print("ready", flush=True)
sys.stdin.readline()
for turn in range(10):
    store.set(f"p{number}.{turn}", f"{number}/{turn}")
    store.set(f"gone{number}", "x")
    store.delete(f"gone{number}")
    assert store.get(f"p{number}.{turn}") == f"{number}/{turn}"
"""


def test_ten_processes_use_the_store_at_once_and_lose_nothing(store: SecretStore) -> None:
    store.set("before", "x")
    processes(SET_MANY, str(store.home))
    expected = {
        f"p{number}.{turn}": f"{number}/{turn}" for number in range(10) for turn in range(10)
    }
    assert {name: store.get(name) for name in store.names()} == {**expected, "before": "x"}
    left = {entry.name for entry in store.home.iterdir()}
    assert left == {"master.key", "secrets.json", "secrets.lock"}


class FileKeyring(KeyringBackend):
    """A small real keyring: one file."""

    priority = 1  # pyright: ignore[reportAssignmentType] - keyring declares it as a property

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.locked = False

    def _read(self) -> dict[str, str]:
        if self.locked:
            raise KeyringLocked("locked")
        return json.loads(self.path.read_text()) if self.path.exists() else {}

    def get_password(self, service: str, username: str) -> str | None:
        return self._read().get(f"{service} {username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self.path.write_text(json.dumps({**self._read(), f"{service} {username}": password}))

    def delete_password(self, service: str, username: str) -> None:
        raise PasswordDeleteError(f"{service} {username}")


@pytest.fixture
def ring(tmp_path: Path) -> Iterator[FileKeyring]:
    before = keyring.get_keyring()
    ring = FileKeyring(tmp_path / "keyring.json")
    keyring.set_keyring(ring)
    yield ring
    keyring.set_keyring(before)


def test_the_systems_keyring_can_hold_the_key(home: Path, ring: FileKeyring) -> None:
    key = MasterKey.open(home, keyring=True)
    assert MasterKey.open(home, keyring=True) == key
    assert MasterKey.open(home.with_name("other"), keyring=True) != key
    assert not (home / "master.key").exists()
    assert len(json.loads(ring.path.read_text())) == 2


def test_a_keyring_that_cannot_be_used_names_the_switch(home: Path, ring: FileKeyring) -> None:
    ring.locked = True
    with pytest.raises(SecretsError, match="locked") as refused:
        MasterKey.open(home, keyring=True)
    assert "keyring = false" in refused.value.way_out
    ring.locked = False
    ring.path.write_text(json.dumps({f"openfang {home.resolve()}": "not a key"}))
    with pytest.raises(SecretsError, match="not a master key"):
        MasterKey.open(home, keyring=True)


def test_only_what_is_still_there_is_replaced(home: Path) -> None:
    store = SecretStore(home, MasterKey.open(home))
    store.set("kept", "one")
    assert store.replace("kept", "two")
    assert store.get("kept") == "two"
    store.delete("kept")
    assert not store.replace("kept", "three")
    assert store.names() == []


WITHOUT_KEYRING = """
import sys
from pathlib import Path
sys.modules["keyring"] = None
from openfang.host.secrets import MasterKey, SecretsError
try:
    MasterKey.open(Path(sys.argv[1]), keyring=True)
except SecretsError as error:
    print(error.way_out)
"""


def test_without_the_keyring_library_the_extra_is_named(home: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", WITHOUT_KEYRING, str(home)],
        env={"PYTHONPATH": SOURCES},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert "openfang[keyring]" in told.stdout


def _held(store: SecretStore) -> dict[str, str]:
    return cast("dict[str, str]", json.loads(store.path.read_text())["secrets"])


def _put(store: SecretStore, **held: str) -> None:
    document = json.loads(store.path.read_text())
    document["secrets"].update(held)
    store.path.write_text(json.dumps(document))
