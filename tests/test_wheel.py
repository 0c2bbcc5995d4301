"""The package as people get it: built offline, compared with the source, and started alone."""

from __future__ import annotations

import email
import http.client
import re
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from email.message import Message

pytestmark = pytest.mark.requirement("C19.1")
ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
SECONDS = 100


def built(folder: Path, *options: str) -> Path:
    """Build a wheel: of a source distribution that is built first, or with `--wheel` at once."""
    command = [BIN / "uv", "build", "--quiet", "--offline", "--out-dir", folder, *options, ROOT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    if "in the cache" in done.stderr or "network was disabled" in done.stderr:
        pytest.skip(f"needs the build tools in the package cache: {done.stderr}")
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


def described(wheel: Path) -> tuple[Message, str]:
    """Read what a wheel says of itself, and which commands it brings."""
    with zipfile.ZipFile(wheel) as archive:
        (folder,) = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        said = email.message_from_string(archive.read(f"{folder}/METADATA").decode())
        return said, archive.read(f"{folder}/entry_points.txt").decode()


def test_a_wheel_is_whole_and_the_same_with_a_source_distribution_between(tmp_path: Path) -> None:
    wheel, other = built(tmp_path / "one"), built(tmp_path / "two", "--wheel")
    assert wheel.read_bytes() == other.read_bytes()
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name for name in names if name.startswith("openfang/")} == files_of_the_package()
    beside = {name.split("/", 1)[1] for name in names if not name.startswith("openfang/")}
    assert beside == {
        *("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"),
        *("data/share/systemd/system/openfang.service", "data/share/systemd/user/openfang.service"),
    }
    said, commands = described(wheel)
    assert "openfang = openfang.__main__:main" in commands
    assert (said["Requires-Python"], said["License-Expression"]) == (">=3.11", "Apache-2.0")
    extras = said.get_all("Provides-Extra", ())
    assert {"agents", "keyring", "local-llm", "postgres"} <= set(extras)
    text = said.get_payload()
    assert isinstance(text, str)
    assert text.startswith("# OpenFang\n")
    assert [place for place in re.findall(r"\]\(([^)]*)\)", text) if place[:4] != "http"] == []


def files_of_the_package() -> set[str]:
    source = ROOT / "src"
    files = (one for one in (source / "openfang").rglob("*") if one.is_file())
    return {str(one.relative_to(source)) for one in files if one.suffix != ".pyc"}


@pytest.mark.needs("bwrap")
def test_what_is_in_a_wheel_is_enough_to_serve_the_page(tmp_path: Path) -> None:
    """The source cannot be seen meanwhile: whatever is used comes out of the wheel."""
    inside = tmp_path / "inside"
    with zipfile.ZipFile(built(tmp_path, "--wheel")) as archive:
        archive.extractall(inside)
    environ = {
        "PATH": f"{BIN}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "OPENFANG_HOME": str(tmp_path / "home"),
        "OPENFANG_LISTEN": "127.0.0.1:0",
        "PYTHONPATH": str(inside),
    }
    hidden = ("bwrap", "--dev-bind", "/", "/", "--tmpfs", str(ROOT / "src"), "--die-with-parent")
    command = [*hidden, sys.executable, "-P", "-m", "openfang", "start", "--init"]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as daemon:
        assert daemon.stdout
        try:
            address = next(line.split()[1] for line in daemon.stdout if "address" in line)
            _, _, place = fetched(address, "/")
            status, page, _ = fetched(address, place)
            named = re.findall(r'(?:src|href)="(/[^"]+\.(?:css|js|svg)[^"]*)"', page)
            assert (status, "Sign in" in page, len(named) > 2) == (200, True, True)
            assert {fetched(address, place)[0] for place in named} == {200}
        finally:
            daemon.kill()


def fetched(address: str, path: str) -> tuple[int, str, str]:
    """Ask for something: status, text, and where it is instead, if it says so."""
    host = address.removeprefix("http://")
    with closing(http.client.HTTPConnection(host, timeout=SECONDS)) as connection:
        connection.request("GET", path, headers={"Accept": "text/html"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers.get("Location", "")
