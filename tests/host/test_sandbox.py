from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import anyio
import anyio.lowlevel
import pytest
from anyio import to_thread
from tests.host.confining import SYSTEM_PATH, Ground, bubblewrap, executable, marked
from tests.node import NODE, NPX

import openfang
from openfang.host.backends import (
    Bare,
    Landlocked,
    Missing,
    SandboxMissing,
    active_layers,
    available,
    choose,
)
from openfang.host.egress import EgressRules, open_egress
from openfang.host.process import Child, LaunchFailed, started
from openfang.host.sandbox import (
    Bridged,
    Bubblewrap,
    Confinement,
    Handed,
    Link,
    Mask,
    Mount,
    command_line,
)
from openfang.host.witness import Sight, look_at

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.requirement("C16.1")
inside = pytest.mark.needs("bwrap")

SOURCES = str(Path(openfang.__path__[0]).parent)


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(root=tmp_path).make()


# The command line


CONFINEMENT = Confinement(
    home=Path("/of/servers/a/home"),
    tmp=Path("/of/servers/a/tmp"),
    cwd=Path("/work"),
    mounts=(Mount(Path("/usr"), Path("/usr")), Mount(Path("/work"), Path("/work"), writable=True)),
    links=(Link("usr/bin", Path("/bin")),),
    masks=(Mask(Path("/of")), Mask(Path("/work/.netrc"), folder=False)),
)


def places(confinement: Confinement) -> list[list[str]]:
    """Cut what is mounted out of a command line."""
    line = command_line(confinement, ("/bin/true",), Bubblewrap("bwrap"))
    words = line[line.index("ALL") + 1 : line.index("--remount-ro")]
    cut: list[list[str]] = []
    for word in words:
        if word.startswith("--"):
            cut.append([])
        cut[-1].append(word)
    return cut


def test_the_whole_command_line_is_a_function_of_its_arguments() -> None:
    line = command_line(CONFINEMENT, ("/bin/echo", "a b", "--bind"), Bubblewrap("/usr/bin/bwrap"))
    assert " ".join(line) == (
        "/usr/bin/bwrap --unshare-user --unshare-pid --unshare-ipc --unshare-uts "
        "--unshare-cgroup-try --die-with-parent --new-session --cap-drop ALL --unshare-net "
        "--symlink usr/bin /bin --symlink /of/servers/a/tmp /tmp "
        "--ro-bind /usr /usr --bind /work /work --proc /proc --dev /dev "
        "--ro-bind /dev/null /work/.netrc "
        "--bind /of/servers/a/home /of/servers/a/home --bind /of/servers/a/tmp /of/servers/a/tmp "
        "--remount-ro / --chdir /work -- /bin/echo a b --bind"
    )


def test_a_network_that_we_made_is_kept_and_any_other_is_taken_away() -> None:
    for network, unshared in ((None, True), (Handed(), False), (Bridged(Path("/of/s")), True)):
        line = command_line(replace(CONFINEMENT, network=network), ("/x",), Bubblewrap("bwrap"))
        assert ("--unshare-net" in line) is unshared


def test_a_mask_lies_over_what_is_around_it_and_under_what_is_named_itself() -> None:
    everything = replace(
        CONFINEMENT,
        mounts=(Mount(Path("/"), Path("/"), writable=True), Mount(Path("/of/x"), Path("/of/x"))),
    )
    words = places(everything)
    assert words[1] == ["--bind", "/", "/"]
    assert ["--symlink", "usr/bin", "/bin"] not in words
    masked = words.index(["--tmpfs", "/of"])
    assert words.index(["--ro-bind", "/of/x", "/of/x"]) > masked
    home = ["--bind", "/of/servers/a/home", "/of/servers/a/home"]
    assert words.index(home) > masked


def test_a_mask_follows_what_it_hides_to_another_place() -> None:
    moved = replace(CONFINEMENT, mounts=(Mount(Path("/"), Path("/elsewhere")),))
    assert ["--tmpfs", "/elsewhere/of"] in places(moved)
    assert ["--ro-bind", "/dev/null", "/elsewhere/work/.netrc"] in places(moved)


def test_tmp_is_the_childs_own_unless_the_real_one_was_asked_for() -> None:
    tmp = Path("/", "tmp")
    asked = replace(CONFINEMENT, mounts=(Mount(tmp, tmp, writable=True),))
    assert ["--bind", str(tmp), str(tmp)] in places(asked)
    below = replace(CONFINEMENT, mounts=(Mount(tmp / "data", tmp / "data", writable=True),))
    assert ["--bind", "/of/servers/a/tmp", str(tmp)] in places(below)


def test_a_folder_that_cannot_be_seen_is_not_started_in() -> None:
    for cwd, expected in (
        ("/work/below", "/work/below"),
        ("/root", "/of/servers/a/home"),
        ("/of", "/of/servers/a/home"),
        ("/of/servers/a/home/x", "/of/servers/a/home/x"),
    ):
        confinement = replace(CONFINEMENT, cwd=Path(cwd))
        line = command_line(confinement, ("/x",), Bubblewrap("bwrap"))
        assert line[line.index("--chdir") + 1] == expected


# What there is, and what is chosen


@pytest.mark.requirement("C16.4")
def test_auto_runs_without_a_sandbox_and_says_so_and_required_does_not() -> None:
    tool, missing = Bubblewrap("/usr/bin/bwrap"), Missing("bubblewrap is not installed")
    assert choose("auto", tool) == choose("required", tool) == tool
    assert isinstance(choose("off", tool), Bare)
    bare = choose("auto", missing)
    assert isinstance(bare, Bare)
    assert "not installed" in bare.reason
    with pytest.raises(SandboxMissing, match="not installed") as refusal:
        choose("required", missing)
    assert "bubblewrap" in refusal.value.way_out


@pytest.mark.requirement("C16.4")
def test_the_layers_are_those_in_force() -> None:
    held = Sight(
        own=frozenset({"mnt", "pid", "net", "ipc"}),
        capable=False,
        may_gain=False,
        filtered=False,
        user=os.geteuid(),
    )
    bare = active_layers(Bare("there is no sandbox here"), None, held)
    assert not any(layer.present for layer in bare)
    assert {layer.detail for layer in bare} == {"there is no sandbox here"}
    tool = Bubblewrap("bwrap", ("--disable-userns",))
    named = {one.name: (one.present, one.detail) for one in active_layers(tool, Handed(), held)}
    assert named["network"] == (True, "only the guarded egress")
    assert named["nested namespaces"][0]
    assert not named["system calls"][0]
    weaker = {one.name: one.present for one in active_layers(Bubblewrap("bwrap"), None, held)}
    assert not weaker["nested namespaces"]


@pytest.mark.requirement("C16.4")
def test_a_layer_that_was_asked_for_and_is_not_there_is_not_claimed() -> None:
    tool = Bubblewrap("bwrap", ("--disable-userns",))
    loose = Sight(
        own=frozenset({"mnt"}), capable=True, may_gain=False, filtered=True, user=os.geteuid()
    )
    found = {layer.name for layer in active_layers(tool, Handed(), loose) if layer.present}
    assert found == {"backend", "files", "nested namespaces", "system calls"}
    assert not any(layer.present for layer in active_layers(tool, Handed(), None))
    with subprocess.Popen(["sleep", "60"]) as child:
        seen = look_at(child.pid)
        child.kill()
    assert seen is not None
    assert look_at(1 << 30) is None


@pytest.mark.requirement("C16.4")
def test_a_machine_without_bubblewrap_has_a_degraded_sandbox_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = available()
    assert isinstance(found, Landlocked | Missing)
    assert found.reason == "bubblewrap is not installed"
    executable(tmp_path / "bwrap", "#!/bin/sh\necho no namespaces for you >&2\nexit 1\n")
    found = available()
    assert isinstance(found, Landlocked | Missing)
    assert "may not" in found.reason


@pytest.mark.requirement("C16.4")
def test_what_is_required_is_the_whole_sandbox() -> None:
    lesser = (
        Landlocked(7, "bubblewrap is not installed"),
        Bubblewrap("/usr/bin/bwrap", filters=False),
    )
    for found in lesser:
        assert choose("auto", found) == found
        with pytest.raises(SandboxMissing) as refusal:
            choose("required", found)
        assert "openfang doctor" in refusal.value.way_out
    held = Sight(own=frozenset(), capable=False, may_gain=False, filtered=True, user=os.geteuid())
    shown = {one.name: one for one in active_layers(lesser[0], None, held)}
    assert not shown["backend"].present
    assert "degraded" in shown["backend"].detail
    assert not shown["processes"].present


# What a child sees


@inside
@pytest.mark.requirement("C16.2")
async def test_folders_named_in_the_arguments_can_be_written_and_files_and_their_folder_read(
    ground: Ground, tmp_path: Path
) -> None:
    def furnish() -> None:
        for name in ("data", "other", "src"):
            (tmp_path / name).mkdir()
        (tmp_path / "src" / "server.py").write_text("server")
        (tmp_path / "src" / "beside.py").write_text("beside")
        (tmp_path / "other" / "x").write_text("x")

    await to_thread.run_sync(furnish)
    said = await ground.shell(
        "cat $2 ${2%/*}/beside.py; echo new > $1/new && echo written; "
        "echo no > $2; echo no > ${2%/*}/new; cat ../other/x; ls $(dirname $1)",
        tmp_path / "data",
        tmp_path / "src" / "server.py",
        tmp_path / "data" / "not-there",
        f"--config={tmp_path / 'src'}",
    )
    assert "serverbeside" in said
    assert "written" in said
    assert await to_thread.run_sync((tmp_path / "data" / "new").read_text) == "new\n"
    # Named behind an option, the folder is one that was named.
    assert await to_thread.run_sync((tmp_path / "src" / "new").exists)
    assert "other" not in said.splitlines()


@inside
@pytest.mark.requirement("C16.2")
async def test_a_named_file_and_its_folder_cannot_be_written(
    ground: Ground, tmp_path: Path
) -> None:
    await to_thread.run_sync(executable, tmp_path / "src" / "server.py", "server")
    said = await ground.shell("echo a > $1; echo b > ${1%/*}/new", tmp_path / "src" / "server.py")
    assert said.count("Read-only file system") == 2
    assert await to_thread.run_sync((tmp_path / "src" / "server.py").read_text) == "server"


@inside
@pytest.mark.requirement("C16.2")
async def test_paths_relative_to_the_childs_folder_count(ground: Ground, tmp_path: Path) -> None:
    await to_thread.run_sync(executable, tmp_path / "app" / "server.js", "// server")
    said = await ground.shell("pwd; cat $1", "./server.js", cwd=tmp_path / "app")
    assert said == f"{tmp_path / 'app'}\n// server"


@inside
@pytest.mark.requirement("C16.2")
async def test_a_named_home_shows_neither_keys_nor_ours(tmp_path: Path) -> None:
    ground = replace_home(tmp_path)

    def furnish() -> None:
        for name in (".ssh/id", ".aws/credentials", ".netrc", "notes"):
            executable(ground.user / name, f"secret of {name}")
        executable(ground.ours / "secrets.db", "secret of ours")
        (ground.user / "way").symlink_to(ground.user)

    await to_thread.run_sync(furnish)
    for named in (ground.user, ground.user / "way"):
        said = await ground.shell(
            "cd $1; cat notes .ssh/id .aws/credentials .netrc .openfang/secrets.db",
            named,
        )
        assert "secret of notes" in said
        assert said.count("secret of") == 1, said
    said = await ground.shell("cat $1", ground.user / ".ssh" / "id")
    assert said == "secret of .ssh/id"
    assert "secret of" not in await ground.shell("cat $1", ground.ours / "secrets.db")


def replace_home(tmp_path: Path) -> Ground:
    """Our home where it is by default: in the user's."""

    class Usual(Ground):
        @property
        def ours(self) -> Path:
            return self.user / ".openfang"

    return Usual(root=tmp_path).make()


@inside
@pytest.mark.requirement("C16.2")
async def test_a_link_that_the_child_made_is_not_followed_at_the_next_start(
    ground: Ground, tmp_path: Path
) -> None:
    def furnish() -> None:
        executable(tmp_path / "secret" / "key", "the key")
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "sub").symlink_to(tmp_path / "secret")

    await to_thread.run_sync(furnish)
    said = await ground.shell("cat $2/key", tmp_path / "data", tmp_path / "data" / "sub")
    assert "the key" not in said


@inside
@pytest.mark.requirement("C16.2")
async def test_the_operators_paths_are_added_and_must_be_there(
    ground: Ground, tmp_path: Path
) -> None:
    await to_thread.run_sync(executable, tmp_path / "lib" / "a", "readable")
    await to_thread.run_sync((tmp_path / "out").mkdir)
    finished = await ground.run(
        *(
            "sh",
            "-c",
            f"cat {tmp_path}/lib/a; echo b > {tmp_path}/out/b; echo c > {tmp_path}/lib/c",
        ),
        read=(tmp_path / "lib",),
        write=(tmp_path / "out",),
    )
    assert finished.stdout == b"readable"
    assert b"Read-only" in finished.stderr
    assert await to_thread.run_sync((tmp_path / "out" / "b").read_text) == "b\n"
    with pytest.raises(LaunchFailed, match="nowhere"):
        await ground.run("true", read=(tmp_path / "nowhere",))
    with pytest.raises(LaunchFailed, match="home of OpenFang"):
        await ground.run("true", write=(ground.ours,))


@inside
@pytest.mark.requirement("C3.8")
async def test_home_and_tmp_are_the_childs_own_and_stay(ground: Ground) -> None:
    said = await ground.shell(
        "echo a > ~/cache; echo b > /tmp/b; cat $TMPDIR/b; echo $HOME $TMPDIR"
    )
    assert said.split() == ["b", str(ground.folder / "home"), str(ground.folder / "tmp")]
    assert await ground.shell("cat ~/cache /tmp/b") == "a\nb\n"
    assert await to_thread.run_sync((ground.folder / "home" / "cache").read_text) == "a\n"


@inside
async def test_the_child_sees_its_own_processes_and_a_few_devices_only(ground: Ground) -> None:
    said = await ground.shell("ls /proc | grep -c '^[0-9]'; ls /dev; ls / ; ls /sys /run")
    processes, rest = said.split("\n", 1)
    assert int(processes) < 6
    assert not {"mem", "kmsg", "sda", "vda", "kvm", "fuse", "loop0"} & set(rest.split())
    assert not {"boot", "media", "mnt", "opt", "run", "srv", "sys", "var"} & set(rest.split())


@inside
async def test_what_lies_on_no_disk_cannot_be_written(ground: Ground) -> None:
    """Or what a program writes there would be lost with its end, and nobody would know."""
    (ground.user / ".ssh").mkdir()
    places = ("/made", "/srv/of/nobody", f"{ground.user}/.ssh/made", f"{ground.user}/made")
    script = f'for place in {" ".join(places)}; do mkdir -p $place || echo "not $place"; done'
    said = await ground.shell(script, ground.user)
    assert [f"not {place}" in said for place in places] == [True, True, True, False], said
    assert (ground.user / "made").is_dir()


@inside
async def test_who_is_given_the_whole_machine_is_still_not_given_the_keys(ground: Ground) -> None:
    keys = executable(ground.user / "dotfiles" / "ssh" / "id", "secret")
    (ground.user / ".ssh").symlink_to(keys.parent)
    (ground.user / ".bash_history").symlink_to("/dev/null")
    letter = executable(ground.user / "letter", "a letter\n")
    said = await ground.shell(f"cat {letter} {keys} {ground.user}/.ssh/id; echo x >/dev/null", "/")
    assert said.startswith("a letter\n"), said
    assert said.count("No such file") == 2
    assert "secret" not in said


# Programs wherever they lie


@inside
@pytest.mark.requirement("C16.2")
async def test_a_script_is_shown_with_its_package_and_what_node_finds_above_it(
    ground: Ground,
) -> None:
    tree = ground.root / "work"
    script = executable(tree / "packages" / "server" / "dist" / "deep" / "main.js", "")
    for name in (
        "packages/server/package.json",
        "packages/server/lib.js",
        "packages/server/node_modules/near/index.js",
        "node_modules/far/index.js",
        "packages/other/index.js",
        ".env",
    ):
        executable(tree / name, name)
    shown = await ground.shell(f"cd {tree} && find . -type f | sort", script)
    assert shown.split() == [
        "./node_modules/far/index.js",
        "./packages/server/dist/deep/main.js",
        "./packages/server/lib.js",
        "./packages/server/node_modules/near/index.js",
        "./packages/server/package.json",
    ]
    written = await ground.shell(f"echo x > {tree}/packages/server/lib.js", script)
    assert "Read-only" in written


@inside
@pytest.mark.requirement("C16.2")
async def test_the_interpreter_of_an_environment_starts_with_its_packages(ground: Ground) -> None:
    finished = await ground.run("python", "-c", "import anyio, openfang; print(anyio.__name__)")
    assert finished.stdout == b"anyio\n", finished.stderr


@inside
@pytest.mark.requirement("C16.2")
async def test_node_and_its_package_runner_start(ground: Ground) -> None:
    for argv in ((NODE, "--version"), (NODE, NPX, "--version")):
        finished = await ground.run(*argv)
        assert finished.exit_code == 0, finished.stderr


def node_of_a_version_manager(user: Path) -> str:
    """As nvm lays it out: a link to a script that `env` finds the interpreter for."""
    prefix = user / ".nvm" / "versions" / "node" / "v22"
    executable(prefix / "bin" / "node", '#!/bin/sh\necho "node runs $1"; shift; cat "$@"\n')
    script = executable(prefix / "lib" / "node_modules" / "npm" / "cli.js", "#!/usr/bin/env node\n")
    (prefix / "bin" / "servant").symlink_to(os.path.relpath(script, prefix / "bin"))
    return str(prefix / "bin")


def tool_of_an_installer(user: Path) -> str:
    """As pipx and uv lay it out: a link into an environment whose interpreter is elsewhere."""
    environment = user / ".local" / "share" / "uv" / "tools" / "it"
    executable(environment / "pyvenv.cfg", "home = /usr/bin\n")
    (environment / "bin").mkdir()
    (environment / "bin" / "python").symlink_to("/bin/sh")
    tool = executable(
        environment / "bin" / "servant", f"#!{environment}/bin/python\necho runs; cat $1\n"
    )
    (user / ".local" / "bin").mkdir(parents=True)
    (user / ".local" / "bin" / "servant").symlink_to(tool)
    return str(user / ".local" / "bin")


def shim_of_a_version_manager(user: Path) -> str:
    """As pyenv lays it out: a shim runs the manager, which runs a version."""
    root = user / ".pyenv"
    executable(
        root / "versions" / "3" / "bin" / "servant", "#!/bin/sh\necho version runs; cat $1\n"
    )
    manager = executable(
        root / "libexec" / "manager", f'#!/bin/sh\nexec {root}/versions/3/bin/servant "$@"\n'
    )
    executable(root / "shims" / "servant", f'#!/bin/sh\nexec {manager} "$@"\n')
    return str(root / "shims")


def binary_among_credentials(user: Path) -> str:
    """As cargo lays it out: programs beside a file of credentials."""
    executable(user / ".cargo" / "credentials.toml", "secret")
    executable(user / ".cargo" / "bin" / "servant", "#!/bin/sh\necho runs; cat $1\n")
    return str(user / ".cargo" / "bin")


def folder_behind_a_link(user: Path) -> str:
    """As fnm lays it out: the PATH leads through a link to the folder."""
    executable(user / "versions" / "v1" / "bin" / "servant", "#!/bin/sh\necho runs; cat $1\n")
    (user / "shells").mkdir()
    (user / "shells" / "1").symlink_to(user / "versions" / "v1")
    return str(user / "shells" / "1" / "bin")


def program_in_a_home(user: Path) -> str:
    """A program beside everything that a person has."""
    executable(user / "servant", "#!/bin/sh\necho runs; cat $1\n")
    return str(user)


LAYOUTS = (
    node_of_a_version_manager,
    tool_of_an_installer,
    shim_of_a_version_manager,
    binary_among_credentials,
    folder_behind_a_link,
    program_in_a_home,
)


@inside
@pytest.mark.requirement("C16.2")
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
async def test_a_program_of_the_users_home_runs_and_the_home_stays_hidden(
    ground: Ground, layout: Callable[[Path], str]
) -> None:
    folder = await to_thread.run_sync(layout, ground.user)
    for name in ("letter", ".local/share/notes"):
        await to_thread.run_sync(executable, ground.user / name, "secret")
    here = replace(ground, search=f"{folder}:{SYSTEM_PATH}")
    finished = await here.run("servant")
    assert b"runs" in finished.stdout, finished.stderr
    hidden = ("letter", ".cargo/credentials.toml", ".local/share/notes")
    script = "servant; cat " + " ".join(str(ground.user / name) for name in hidden)
    finished = await here.run("sh", "-c", script)
    assert b"secret" not in finished.stdout
    assert finished.stderr.count(b"cat: ") == len(hidden)


@inside
async def test_a_program_that_is_not_there_is_named_before_anything_starts(ground: Ground) -> None:
    for argv in (("no-such-program",), ("./no-such-program",), ()):
        with pytest.raises(LaunchFailed, match="was not found"):
            await ground.run(*argv)


# The end of a child


class Ready(Child):
    """Waits for the first word of a child."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = asyncio.Event()

    def received(self, fd: int, data: bytes) -> None:
        assert fd == 1, data
        self.heard.set()


# Every way out of a family that a program has. Each of them ends by itself after half a minute,
# should the code under test not end it. The word in the command line is seen from outside.
FAMILY = """
import os, signal, sys
signal.alarm(30)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def stay():
    os.closerange(0, 3)
    os.execve("/bin/sh", ["sh", "-c", "trap '' TERM HUP; sleep 30; :", sys.argv[1]], {})
for way in ("session", "orphan", "daemon", "group"):
    child = os.fork()
    if child == 0:
        if way in ("session", "daemon"):
            os.setsid()
        if way == "group":
            os.setpgid(0, 0)
        if way in ("orphan", "daemon") and os.fork():
            os._exit(0)
        stay()
    if way in ("orphan", "daemon"):
        os.waitpid(child, 0)
print("ready", flush=True)
if sys.argv[2] == "stay":
    signal.pause()
"""


async def gone_soon(word: str) -> bool:
    """Wait for the last process to go."""
    with anyio.move_on_after(10.0):
        while await to_thread.run_sync(marked, word):
            await anyio.lowlevel.checkpoint()
        return True
    return False


@inside
@pytest.mark.requirement("C3.8")
@pytest.mark.parametrize("network", ["none", "handed", "bridged"])
async def test_no_descendant_is_left_when_the_connection_ends(ground: Ground, network: str) -> None:
    word = f"family-{uuid4().hex}"
    unix_socket = ground.unix_socket if network == "bridged" else None
    async with open_egress(EgressRules(), noted=print, unix_socket=unix_socket) as egress:
        launch = await to_thread.run_sync(
            lambda: ground.launch(
                *(sys.executable, "-I", "-S", "-c", FAMILY, word, "stay"),
                egress=None if network == "none" else egress,
            )
        )
        with anyio.fail_after(30):
            async with started(launch, Ready()) as child:
                await child.heard.wait()
                assert len(await to_thread.run_sync(marked, word)) >= 5
        assert await gone_soon(word)


@inside
@pytest.mark.requirement("C3.8")
async def test_what_a_child_leaves_behind_is_gone_when_it_ends(ground: Ground) -> None:
    word = f"family-{uuid4().hex}"
    with anyio.fail_after(30):
        finished = await ground.run(sys.executable, "-I", "-S", "-c", FAMILY, word, "leave")
    assert (finished.exit_code, finished.stdout) == (0, b"ready\n")
    assert await gone_soon(word)


DAEMON = """
import sys
from pathlib import Path
import anyio
from anyio import to_thread
from openfang.host.egress import EgressRules, open_egress
from openfang.host.process import Child, started
sys.path.insert(0, sys.argv[1])
from tests.host.confining import Ground

class Echo(Child):
    def received(self, fd, data):
        print(data.decode(), end="", flush=True)

async def main():
    ground = Ground(root=Path(sys.argv[2]))
    async with open_egress(EgressRules(), noted=print) as egress:
        argv = (sys.executable, "-I", "-S", "-c", sys.argv[3], sys.argv[4], "stay")
        launch = await to_thread.run_sync(lambda: ground.launch(*argv, egress=egress))
        async with started(launch, Echo()):
            await anyio.sleep_forever()

anyio.run(main, backend_options={"use_uvloop": True})
"""
# In a namespace where we are nobody in particular, as root sees an ordinary user.
ORDINARY = ("unshare", "--user", "--map-user=1000", "--map-group=1000")


@inside
@pytest.mark.needs("unshare")
@pytest.mark.requirement("C3.8")
@pytest.mark.parametrize("user", ["self", "ordinary"])
async def test_no_descendant_is_left_when_we_are_killed(tmp_path: Path, user: str) -> None:
    word = f"family-{uuid4().hex}"
    folder = str(Path(__file__).parents[2])
    argv = [sys.executable, "-c", DAEMON, folder, str(tmp_path), FAMILY, word]

    def kill_it() -> None:
        with subprocess.Popen(
            [*(ORDINARY if user == "ordinary" else ()), *argv],
            env={"PATH": SYSTEM_PATH, "PYTHONPATH": SOURCES},
            stdout=subprocess.PIPE,
        ) as daemon:
            assert daemon.stdout is not None
            assert daemon.stdout.readline() == b"ready\n"
            assert len(marked(word)) >= 5
            daemon.kill()

    await to_thread.run_sync(kill_it)
    assert await gone_soon(word)


# As an ordinary user


ORDINARILY = """
import os, sys
from pathlib import Path
import anyio
sys.path.insert(0, sys.argv[1])
from tests.host.confining import Ground, bubblewrap
from openfang.host.egress import EgressRules, open_egress

async def main():
    print(os.getuid(), bubblewrap().makes_networks)
    ground = Ground(root=Path(sys.argv[2]))
    async with open_egress(EgressRules(), noted=print) as egress:
        script = "id -u; cat /etc/shadow; cat ../../../secret; python -c 'print(6 * 7)'"
        script += "; curl --silent http://10.0.0.1/; cat /proc/net/dev | wc -l"
        finished = await ground.run("sh", "-c", script, egress=egress)
        print(finished.stdout.decode(), finished.stderr.decode())

anyio.run(main, backend_options={"use_uvloop": True})
"""


@inside
@pytest.mark.needs("unshare", "curl")
def test_an_ordinary_user_has_the_same_sandbox(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    folder = str(Path(__file__).parents[2])
    finished = subprocess.run(
        [*ORDINARY, sys.executable, "-c", ORDINARILY, folder, str(tmp_path)],
        env={"PATH": SYSTEM_PATH, "PYTHONPATH": SOURCES},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    said = finished.stdout
    assert said.startswith("1000 True\n")
    assert "\n1000\n" in said
    assert "\n42\n" in said
    assert "10.0.0.1 is in the refused range" in said
    assert "Refused(rule='private', host='10.0.0.1', port=80)" in said
    assert "\n3\n" in said, "the only device is the loopback"
    assert said.count("No such file") == 2
    assert "root:" not in said


@inside
def test_the_machine_is_tried_as_it_is_used() -> None:
    assert available() == bubblewrap()
