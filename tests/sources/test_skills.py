"""Skills in force: what a model reads of them, and what their programs are handed and reach."""

from __future__ import annotations

import shutil
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from anyio import to_thread

from openfang.app.installs.door import Door
from openfang.core.errors import CallTimedOut, Parked, SourceFailed
from openfang.core.keys import Scope, Way
from openfang.core.labels import Labels
from openfang.core.tools import Risk
from openfang.host.cgroups import hierarchy
from openfang.host.parcels import pack
from openfang.testing import OpenApp, open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from openfang.core.results import Result

pytestmark = [pytest.mark.requirement("C6.3", "C16.1", "C16.2"), pytest.mark.needs("bwrap")]

DATA = Path(__file__).parents[1] / "data" / "skills"
TOML = """
[skill]
name = "{name}"
description = "Does what its test needs."
[runtime]
type = "{kind}"
entry = "{entry}"
[[tools.provided]]
name = "probe"
description = "List what is there."
input_schema = {{ type = "object" }}
"""
SHELL_WORDS = "$(touch pwned) `touch pwned`; touch pwned \" ' \n touch pwned\n| sh & ${HOME}"


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A folder for the skills of a test."""
    folder = tmp_path / "made"
    folder.mkdir()
    return folder


def written(made: Path, kind: str, entry: str, program: str, more: str = "") -> Path:
    """A skill with one tool, `probe`."""
    folder = made / f"{kind}-probe"
    folder.mkdir()
    text = TOML.format(name=folder.name, kind=kind, entry=entry) + more
    (folder / "skill.toml").write_text(text, "utf-8")
    (folder / entry).write_text(program, "utf-8")
    return folder


@asynccontextmanager
async def with_skill(tmp_path: Path, folder: Path, config: str = "") -> AsyncGenerator[OpenApp]:
    """An app in which one skill was installed and enabled."""
    async with open_test_app(tmp_path / "home", config=config) as app:
        await added(app, folder)
        yield app


async def added(app: OpenApp, folder: Path) -> None:
    door = Door(app.parts, app.caller)
    parcel = await to_thread.run_sync(pack, folder)
    review = await door.install("skill", parcel, str(folder))
    await door.enable(review.id, review.digest)


async def approved(app: OpenApp, tool: str, **arguments: Any) -> Result:
    """Make a call for which somebody says yes."""
    with pytest.raises(Parked) as caught:
        await app.call(tool, **arguments)
    await app.parts.approvals.answer(
        caught.value.question_id, approve=True, by=app.caller.id, via=Way.API, scope=Scope.RULE
    )
    return await app.call(tool, **arguments)


async def test_a_skill_is_read_when_it_is_needed(tmp_path: Path) -> None:
    async with with_skill(tmp_path, DATA / "release-notes") as app:
        tool = app.parts.registry.find("skill_release_notes")
        assert tool is not None
        assert tool.id == "ext:release-notes:read"
        assert "Turns a list of merged changes into release notes" in tool.description
        assert (tool.risk, tool.effects) == (Risk.LOW, frozenset())
        result = await app.call("skill_release_notes")
        assert "Write for the person who upgrades." in result.text
        assert "- references/order.md" in result.text
        assert not result.labels.untrusted
        more = await app.call("ext:release-notes:read", file="references/order.md")
        assert more.text.startswith("What breaks first")


@pytest.mark.parametrize(
    "file", ["../../config.toml", "/etc/passwd", "references/../../..", "none.md", "scripts"]
)
async def test_nothing_but_its_files_is_read(tmp_path: Path, file: str) -> None:
    async with with_skill(tmp_path, DATA / "release-notes") as app:
        result = await app.call("skill_release_notes", file=file)
        assert result.is_error


async def test_a_link_that_somebody_put_there_later_is_not_followed(tmp_path: Path) -> None:
    async with with_skill(tmp_path, DATA / "release-notes") as app:
        place = tmp_path / "home/skills/release-notes/references"
        await to_thread.run_sync((place / "out.md").symlink_to, "/etc/passwd")
        assert (await app.call("skill_release_notes", file="references/out.md")).is_error


async def test_what_is_of_low_trust_is_read_as_words_of_others(tmp_path: Path) -> None:
    config = '[skills.release-notes]\ntrust = "low"\n'
    async with with_skill(tmp_path, DATA / "release-notes", config) as app:
        result = await app.call("skill_release_notes")
        assert result.labels & Labels.EXTERNAL_NETWORK


async def test_a_script_runs_with_its_arguments_and_its_input(tmp_path: Path) -> None:
    async with with_skill(tmp_path, DATA / "release-notes") as app:
        tool = app.parts.registry.find("skill_release_notes_run")
        assert tool is not None
        assert (tool.risk, tool.tags) == (Risk.HIGH, frozenset({"system.exec"}))
        result = await approved(
            app,
            "skill_release_notes_run",
            script="scripts/count.py",
            args=[SHELL_WORDS],
            stdin="one\ntwo\n",
        )
        assert result.structured == {
            "exit_code": 0,
            "stdout": f"2 changes, told by {[SHELL_WORDS]!r}",
            "stderr": "",
        }


async def test_the_operator_can_keep_scripts_from_running(tmp_path: Path) -> None:
    config = "[skills.release-notes]\nscripts = false\n"
    async with with_skill(tmp_path, DATA / "release-notes", config) as app:
        assert app.parts.registry.find("skill_release_notes_run") is None
        assert app.parts.registry.find("skill_release_notes") is not None


async def test_a_tool_of_the_seed_answers_in_json(tmp_path: Path) -> None:
    async with with_skill(tmp_path, DATA / "word-count") as app:
        result = await app.call("ext:word-count:count", text="one two three")
        assert result.structured == {"tool": "count", "words": 3}
        assert app.parts.registry.find("count") is not None


async def test_a_setting_is_the_operators_word_then_a_variable_then_a_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORD_COUNT_MARK", ",")
    async with with_skill(tmp_path, DATA / "word-count") as app:
        result = await app.call("ext:word-count:count", text="a b,c")
        assert result.structured["words"] == 2
    config = '[skills.word-count.config]\nWORD_MARK = ";"\n'
    other = tmp_path / "other"
    async with with_skill(other, DATA / "word-count", config) as app:
        result = await app.call("ext:word-count:count", text="a;b;c d")
        assert result.structured["words"] == 3


async def test_every_secret_that_it_was_given_is_known_again(
    tmp_path: Path, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("ONE", "TWO", "THREE", "FOUR_API_TOKEN")
    more = "".join(f'[config.{name}]\nenv = "{name}"\n' for name in names)
    config = "[skills.python-probe.config]\n"
    config += "".join(f'{name} = "kept-back-{name}-8731"\n' for name in names[:3])
    monkeypatch.setenv("FOUR_API_TOKEN", "kept-back-FOUR-8731")
    program = f"import os\nprint([os.environ[name] for name in {names}])"
    folder = written(made, "python", "main.py", program, more)
    async with with_skill(tmp_path, folder, config) as app:
        told = (await app.call("ext:python-probe:probe")).text
        assert (told.count("[redacted:known_value:"), "8731" in told) == (4, False)


async def test_a_setting_that_is_missing_is_said_and_nothing_runs(
    tmp_path: Path, made: Path
) -> None:
    more = "[config.TOKEN]\nrequired = true\n"
    folder = written(made, "python", "main.py", "print('ran')", more)
    async with with_skill(tmp_path, folder) as app:
        result = await app.call("ext:python-probe:probe")
        assert result.is_error
        assert "needs TOKEN" in result.text
        assert "[skills.python-probe]" in result.text


NODE = """
let said = "";
process.stdin.on("data", (data) => { said += data; });
process.stdin.on("end", () => {
  const asked = JSON.parse(said);
  console.log(JSON.stringify({ got: asked.input.text, argv: process.argv.slice(2) }));
});
"""
PYTHON = """
import json, sys
asked = json.load(sys.stdin)
print(json.dumps({"got": asked["input"]["text"], "argv": sys.argv[1:]}))
"""
SHELL = """
said=$(cat)
ls
printf '%s\\n' "$said"
echo "$1"
"""


@pytest.mark.parametrize(
    ("kind", "entry", "program"), [("python", "main.py", PYTHON), ("node", "main.js", NODE)]
)
async def test_what_looks_like_shell_is_data(
    tmp_path: Path, made: Path, kind: str, entry: str, program: str
) -> None:
    if kind == "node" and shutil.which("node") is None:
        pytest.skip("this machine has no node")
    async with with_skill(tmp_path, written(made, kind, entry, program)) as app:
        result = await app.call(f"ext:{kind}-probe:probe", text=SHELL_WORDS)
        assert result.structured == {"got": SHELL_WORDS, "argv": ["probe"]}


async def test_a_shell_runs_the_skills_file_and_never_its_input(tmp_path: Path, made: Path) -> None:
    async with with_skill(tmp_path, written(made, "shell", "main.sh", SHELL)) as app:
        result = await app.call("ext:shell-probe:probe", text=SHELL_WORDS)
        assert not result.is_error, result.text
        assert "main.sh" in result.text
        assert "pwned\n" not in result.text.partition("{")[0]
        assert "$(touch pwned)" in result.text
        assert result.text.endswith("probe")
    found = await to_thread.run_sync(lambda: list(tmp_path.rglob("pwned")))
    assert found == []


PRYING = """
import json, os, pathlib, socket, sys
found = {"environment": sorted(os.environ), "cwd": sorted(os.listdir())}
def tried(act):
    try:
        act()
        return "done"
    except OSError as error:
        return type(error).__name__
here = pathlib.Path(__file__).parent
asked = json.load(sys.stdin)["input"]
found["writes itself"] = tried(lambda: (here / "new").write_text("x"))
found["reads the key"] = tried(lambda: pathlib.Path(asked["key"]).read_text())
found["reads elsewhere"] = tried(lambda: pathlib.Path(asked["elsewhere"]).read_text())
found["writes its own"] = tried(
    lambda: (pathlib.Path(os.environ["OPENFANG_WORKSPACE"]) / "kept").write_text("x")
)
found["reaches a port"] = tried(lambda: socket.create_connection(("127.0.0.1", asked["port"]), 2))
print(json.dumps(found))
"""


async def test_a_program_reaches_its_folders_and_nothing_else(tmp_path: Path, made: Path) -> None:
    elsewhere = tmp_path / "elsewhere.txt"
    elsewhere.write_text("not for it")
    async with with_skill(tmp_path, written(made, "python", "main.py", PRYING)) as app:
        found = (
            await app.call(
                "ext:python-probe:probe",
                key=str(tmp_path / "home/key"),
                elsewhere=str(elsewhere),
                port=1,
            )
        ).structured
        assert found["writes itself"] == "OSError"
        assert (tmp_path / "home/children/~skill-python-probe/home").is_dir()
        assert found["reads the key"] == "FileNotFoundError"
        assert found["reads elsewhere"] == "FileNotFoundError"
        assert found["writes its own"] == "done"
        assert found["reaches a port"] in {"ConnectionRefusedError", "OSError"}
        assert set(found["environment"]) <= {
            "HOME",
            "LANG",
            "LC_CTYPE",
            "OPENFANG_CHAIN",
            "OPENFANG_RUN",
            "OPENFANG_SKILL",
            "OPENFANG_WORKSPACE",
            "PATH",
            "PWD",
            "PYTHONIOENCODING",
            "TMPDIR",
            "TRACEPARENT",
        }


async def test_the_operator_opens_paths(tmp_path: Path, made: Path) -> None:
    elsewhere, out = tmp_path / "elsewhere.txt", tmp_path / "out"
    elsewhere.write_text("for it")
    out.mkdir()
    config = f'[skills.python-probe]\nfs_read = ["{elsewhere}"]\nfs_write = ["{out}"]\n'
    program = PRYING + f"(pathlib.Path({str(out)!r}) / 'made').write_text('x')\n"
    async with with_skill(tmp_path, written(made, "python", "main.py", program), config) as app:
        result = await app.call("ext:python-probe:probe", **pried(elsewhere))
        assert '"reads elsewhere": "done"' in result.text
    assert (out / "made").exists()


def pried(elsewhere: Path) -> dict[str, Any]:
    return {"key": "/etc/shadow", "elsewhere": str(elsewhere), "port": 1}


async def test_the_operator_says_whether_there_is_a_sandbox(tmp_path: Path, made: Path) -> None:
    elsewhere = tmp_path / "elsewhere.txt"
    elsewhere.write_text("in the open")
    folder = written(made, "python", "main.py", PRYING)
    bare = '[skills.python-probe]\nsandbox = "off"\n'
    async with with_skill(tmp_path / "bare", folder, bare) as app:
        found = (await app.call("ext:python-probe:probe", **pried(elsewhere))).structured
        assert found["reads elsewhere"] == "done"
    held = '[skills.python-probe]\nsandbox = "required"\n'
    async with with_skill(tmp_path / "held", folder, held) as app:
        found = (await app.call("ext:python-probe:probe", **pried(elsewhere))).structured
        assert found["reads elsewhere"] == "FileNotFoundError"


FETCH = """
import json, urllib.error, urllib.request
try:
    said = urllib.request.urlopen("http://10.0.0.1/", timeout=10).read().decode()
except urllib.error.HTTPError as error:
    said = f"the guard: {error.code}"
except OSError as error:
    said = "no way out"
print(json.dumps({"said": said}))
"""


async def test_the_network_is_reached_if_it_was_asked_for_and_nobody_says_no(
    tmp_path: Path, made: Path
) -> None:
    wish = '[requirements]\ncapabilities = ["NetConnect(*)"]\n'
    folder = written(made, "python", "main.py", FETCH, wish)
    async with with_skill(tmp_path / "yes", folder) as app:
        result = await app.call("ext:python-probe:probe")
        assert result.structured == {"said": "the guard: 403"}
        assert result.labels.untrusted
        tool = app.parts.registry.find("ext:python-probe:probe")
        assert tool is not None
        assert "network.http" in tool.tags
    closed = "[skills.python-probe]\nnetwork = false\n"
    async with with_skill(tmp_path / "no", folder, closed) as app:
        result = await app.call("ext:python-probe:probe")
        assert result.structured == {"said": "no way out"}


async def test_a_program_that_fails_says_why(tmp_path: Path, made: Path) -> None:
    program = "import sys\nprint('half')\nsys.exit('it broke here')\n"
    async with with_skill(tmp_path, written(made, "python", "main.py", program)) as app:
        result = await app.call("ext:python-probe:probe")
        assert result.is_error
        assert result.text == "The program ended with exit code 1: it broke here"


async def test_a_program_that_never_ends_is_ended(tmp_path: Path, made: Path) -> None:
    config = "[skills.python-probe]\ntimeout_secs = 0.5\n"
    program = "import time\ntime.sleep(60)\n"
    async with with_skill(tmp_path, written(made, "python", "main.py", program), config) as app:
        with pytest.raises(CallTimedOut):
            await app.call("ext:python-probe:probe")


GREEDY = """
import os, time
children = []
for _ in range(3):
    child = os.fork()
    if child == 0:
        held = b"x" * (500 << 20)
        time.sleep(1000)
    children.append(child)
ended, status = os.wait()
print(os.waitstatus_to_exitcode(status))
for child in children:
    if child != ended:
        os.kill(child, 9)
"""


@pytest.mark.skipif(hierarchy() is None, reason="nobody here can write cgroups")
async def test_what_it_starts_takes_no_more_memory_together(tmp_path: Path, made: Path) -> None:
    async with with_skill(tmp_path, written(made, "python", "main.py", GREEDY)) as app:
        result = await app.call("ext:python-probe:probe")
        assert "-9" in result.text


async def test_a_flood_is_cut(tmp_path: Path, made: Path) -> None:
    program = "import sys\nfor _ in range(400): sys.stdout.write('x' * 10_000)\n"
    async with with_skill(tmp_path, written(made, "python", "main.py", program)) as app:
        result = await app.call("ext:python-probe:probe")
        assert result.is_error


@pytest.mark.parametrize("file", ["main.py", "helper.py", "json.py", "__pycache__/helper.pyc"])
async def test_a_program_that_was_changed_is_not_run(tmp_path: Path, made: Path, file: str) -> None:
    folder = written(made, "python", "main.py", "import json, helper\nprint(helper.WORD)")
    (folder / "helper.py").write_text("WORD = 1")
    async with with_skill(tmp_path, folder) as app:
        assert (await app.call("ext:python-probe:probe")).text == "1"
        place = tmp_path / "home/skills/python-probe" / file
        place.parent.mkdir(exist_ok=True)
        await to_thread.run_sync(place.write_text, "WORD = 2\nprint(2)")
        with pytest.raises(SourceFailed, match="not those that were accepted"):
            await app.call("ext:python-probe:probe")
