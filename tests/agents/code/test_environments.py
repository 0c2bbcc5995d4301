"""A Python of the agent's own, and packages of its own. Nothing is fetched from anywhere."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import pytest
from anyio import to_thread
from tests.agents.code.stage import stage

from openfang.core.errors import SourceFailed
from openfang.safety.environment import DEFAULT_PATH

pytestmark = [pytest.mark.requirement("C6.1", "C16.1"), pytest.mark.needs("bwrap")]

BY_UV = f"{Path(sys.executable).parent}:{DEFAULT_PATH}"
METADATA = "Metadata-Version: 2.1\nName: fang-words\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
SAYS = "import fang_words\nasync def run(message): return fang_words.HELLO"


def wheel(folder: Path) -> str:
    """Write a package, and the requirement that names it."""
    file = folder / "fang_words-1.0-py3-none-any.whl"
    info = "fang_words-1.0.dist-info"
    with ZipFile(file, "w") as archive:
        archive.writestr("fang_words.py", "HELLO = 'from a package'")
        archive.writestr(f"{info}/METADATA", METADATA)
        archive.writestr(f"{info}/WHEEL", WHEEL)
        archive.writestr(f"{info}/RECORD", "")
    return f"fang-words @ {file.as_uri()}"


@pytest.mark.parametrize("search", [BY_UV, DEFAULT_PATH])
async def test_an_agents_packages_are_installed_once_and_kept(tmp_path: Path, search: str) -> None:
    """By uv, where there is one, and by pip."""
    assert (shutil.which("uv", path=search) is None) == (search == DEFAULT_PATH)
    requirement = wheel(tmp_path)
    async with stage(tmp_path, search=search) as on:
        spec = on.agent(SAYS, requirements=(requirement,))
        assert await on.answer(spec) == "from a package"
        twin = on.agent(SAYS, name="twin", requirements=(requirement,))
        assert await on.answer(twin) == "from a package"
        kept = [path for path in (on.home / "agents-env").iterdir() if path.is_dir()]
        assert len(kept) == 1
        assert (kept[0] / "openfang.ready").exists()


async def test_an_environment_that_was_taken_away_is_made_again(tmp_path: Path) -> None:
    requirement = wheel(tmp_path)
    async with stage(tmp_path, search=BY_UV) as on:
        spec = on.agent(SAYS, requirements=(requirement,))
        assert await on.answer(spec) == "from a package"
        await to_thread.run_sync(shutil.rmtree, on.home / "agents-env")
        again = replace(spec, workspace=on.home / "workspaces" / "other")
        assert await on.answer(again) == "from a package"


async def test_packages_that_cannot_be_installed_are_said_so_and_nobody_else_waits(
    tmp_path: Path,
) -> None:
    requirement = f"fang-words @ {(tmp_path / 'missing-1.0-py3-none-any.whl').as_uri()}"
    async with stage(tmp_path, search=BY_UV) as on:
        spec = on.agent(SAYS, requirements=(requirement,))
        for _ in range(2):
            with pytest.raises(SourceFailed, match="environment could not be made") as caught:
                await on.say(spec)
            assert "requirements" in caught.value.way_out
        other = on.agent("async def run(message): return 'other'", name="other")
        assert await on.answer(other) == "other"


async def test_a_python_can_be_named_by_path_or_version(tmp_path: Path) -> None:
    source = "import sys\nasync def run(message): return list(sys.version_info[:2])"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    answer = f"[{sys.version_info.major}, {sys.version_info.minor}]"
    async with stage(tmp_path) as on:
        assert await on.answer(on.agent(source, python=sys.executable)) == answer
        assert await on.answer(on.agent(source, name="named", python=version)) == answer


async def test_a_python_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        spec = on.agent("async def run(message): return 1", python="3.99")
        with pytest.raises(SourceFailed, match=r"Python 3\.99 was not found") as caught:
            await on.say(spec)
        assert "agent.toml" in caught.value.way_out
