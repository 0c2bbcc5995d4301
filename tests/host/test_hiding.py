"""What is hidden stays hidden: from a child that prepares its next start, and by every name."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from tests.host.confining import SYSTEM_PATH, Ground, executable

from openfang.host.household import links
from openfang.host.process import LaunchFailed
from openfang.host.sandbox import Bubblewrap, Confinement, Mask, Mount, command_line
from openfang.host.sockets import bound, sweep

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.requirement("C16.1", "C16.2")
inside = pytest.mark.needs("bwrap")


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(root=tmp_path).make()


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


# Sockets


@pytest.fixture
def short() -> Iterator[Ground]:
    """Short names: that of a socket has to fit into a hundred bytes."""
    with TemporaryDirectory() as name:
        yield Ground(root=Path(name)).make()


def hear(stack: ExitStack, path: Path) -> socket.socket:
    """Listen at a path, as an agent of keys does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    listener = stack.enter_context(socket.socket(socket.AF_UNIX))
    listener.bind(str(path))
    listener.listen()
    return listener


SPEAK = """
import socket, sys
for place in sys.argv[1].split(":"):
    with socket.socket(socket.AF_UNIX) as there:
        if there.connect_ex(place) == 0:
            print(place)
"""


async def reached(
    ground: Ground, places: list[Path], *named: Path, read: tuple[Path, ...] = ()
) -> str:
    """Give the sockets that a child speaks to when it was given these."""
    speak = (sys.executable, "-I", "-S", "-c", SPEAK, ":".join(map(str, places)))
    finished = await ground.run(*speak, *map(str, named), read=read)
    assert finished.exit_code == 0, finished.stderr
    return finished.stdout.decode()


@inside
async def test_sockets_in_a_named_folder_are_reached_by_none_of_its_names(
    short: Ground, stack: ExitStack
) -> None:
    folder, link = short.root / "f", short.root / "l"
    names = ("a.sock", "in/agent")
    for name in names:
        hear(stack, folder / name)
    link.symlink_to(folder)
    (folder / "file").write_text("a file")
    places = [where / name for where in (folder, link) for name in names]
    for named in (folder, link, folder / "file", short.root, Path("/")):
        assert await reached(short, places, named) == "", named
    # Listed by the operator it is reached, or the above would prove nothing.
    found = await reached(short, places, folder, read=(folder / "a.sock",))
    assert found == f"{folder / 'a.sock'}\n"


@inside
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
async def test_a_socket_in_a_folder_of_somebody_else_does_not_stop_the_start(
    short: Ground, stack: ExitStack
) -> None:
    closed = short.root / "f" / "closed"
    hear(stack, closed / "deep" / "agent")
    closed.chmod(0o700)
    os.chown(closed, 4000, 4000)
    said = await short.shell("ls -A $1/closed; echo started", short.root / "f")
    assert said == "started\n"


def test_the_kernels_list_of_sockets_is_read_as_it_is_written() -> None:
    table = (
        b"Num       RefCount Protocol Flags    Type St Inode Path\n"
        b"0000000000000000: 00000002 00000000 00010000 0001 01 12345 /run/a b/c\n"
        b"0000000000000000: 00000003 00000000 00000000 0001 03   638\n"
        b"0000000000000000: 00000002 00000000 00010000 0001 01     7 @/abstract\n"
        b"0000000000000000: 00000002 00000000 00010000 0001 01     8 relative\n"
        b"0000000000000000: 00000002 00000000 00010000 0001 01     9 /run/\xff\n"
    )
    assert list(bound(table)) == [Path("/run/a b/c"), Path("/run/\udcff")]


def test_sockets_that_nobody_listens_at_are_swept_and_others_stay(
    short: Ground, stack: ExitStack
) -> None:
    for name in ("egress-alive.sock", "egress-dead.sock", "egress-new.sock", "other.sock"):
        listener = hear(stack, short.user / name)
        if "alive" not in name:
            listener.close()
        if "new" not in name:
            os.utime(short.user / name, (1, 1))
    sweep(short.user, "egress-*.sock")
    left = {path.name for path in short.user.iterdir()}
    assert left == {"egress-alive.sock", "egress-new.sock", "other.sock"}


# Links of the child's


@inside
async def test_no_link_in_its_own_home_opens_a_folder(ground: Ground) -> None:
    executable(ground.user / ".ssh" / "id", "the key")
    for own in (ground.folder / "home", ground.folder / "tmp"):
        link = f"ln -s ../../../../user/.ssh {own}/data"
        assert await ground.shell(f"{link} && echo made") == "made\n"
        for named in (own / "data", own / "data" / "id", f"{own.name}/data"):
            said = await ground.shell(
                f"cat {own}/data/id {ground.user}/.ssh/id; echo x > {own}/data/new", named
            )
            assert "the key" not in said, named
            assert "bwrap: " not in said
    assert not (ground.user / ".ssh" / "new").exists()


@inside
async def test_no_script_in_its_own_home_opens_a_package(ground: Ground) -> None:
    package = ground.root / "package"
    for name in ("package.json", "main.js", "secret"):
        executable(package / name, f"of {name}")
    await ground.shell(f"ln -s {package}/main.js ~/main.js")
    said = await ground.shell(f"cat {package}/secret", "home/main.js")
    assert "of secret" not in said
    shown = await ground.shell(f"cat {package}/secret", package / "main.js")
    assert shown == "of secret"


@inside
async def test_a_link_that_leads_through_what_is_written_leads_nowhere(ground: Ground) -> None:
    executable(ground.root / "secret" / "key", "the key")
    data, way = ground.root / "data", ground.root / "way"
    data.mkdir()
    (data / "sub").symlink_to(ground.root / "secret")
    way.symlink_to(data / "sub")
    assert "the key" not in await ground.shell("cat $1/key", way, data)
    assert await ground.shell("cat $1/key", way) == "the key"
    with pytest.raises(LaunchFailed, match="could have made"):
        await ground.run("true", str(data), read=(way,))


@inside
async def test_a_link_to_a_folder_around_it_cannot_be_changed(ground: Ground) -> None:
    way = ground.user / "way"
    way.symlink_to(ground.user)
    said = await ground.shell("ln -sfn / $1; rm $1", way)
    assert said.count("Read-only") == 2, said
    assert way.readlink() == ground.user


@inside
@pytest.mark.parametrize("kind", ["script", "link", "environment", "linked package"])
def test_no_program_of_its_own_making_opens_a_folder(ground: Ground, kind: str) -> None:
    letters, project = ground.user / "letters", ground.root / "project"
    executable(letters / "bin" / "letter", "#!/bin/sh\necho a letter")
    program = executable(project / "bin" / "servant", "#!/bin/sh\n")
    if kind == "script":
        program.write_text(f"#!{letters}/bin/letter\n")
    if kind == "link":
        program.unlink()
        program.symlink_to(letters / "bin" / "letter")
    if kind == "environment":
        executable(project / "pyvenv.cfg", f"home = {letters}/bin\n")
    if kind == "linked package":
        executable(project / "pyvenv.cfg", "home = /usr/bin\n")
        executable(project / "lib/python3/site-packages/a.pth", f"{letters}\n")
    here = Ground(root=ground.root, search=f"{project / 'bin'}:{SYSTEM_PATH}")
    believed, wary = here.launch(str(program)).argv, here.launch(str(program), str(project)).argv
    assert not any(word.startswith(str(letters)) for word in wary)
    # Where the child cannot write to the project, all of this is believed.
    assert any(word.startswith(str(letters)) for word in believed)


@inside
async def test_an_environment_in_a_named_project_finds_its_interpreter_and_no_letters(
    ground: Ground,
) -> None:
    """As uv lays it out: the project is the child's to write, its environment leads elsewhere."""
    version = ground.user / ".local/share/uv/python/cpython-3/bin"
    executable(version / "python3", '#!/bin/sh\necho "python runs"; cat "$1/letter"\n')
    executable(ground.user / "letters" / "letter", "secret")
    project = ground.root / "project"
    executable(project / ".venv" / "pyvenv.cfg", f"home = {version}\n")
    (project / ".venv" / "bin").mkdir()
    python = project / ".venv" / "bin" / "python"
    python.symlink_to(version / "python3")
    finished = await ground.run(str(python), str(ground.user / "letters"), str(project))
    assert b"python runs\nsecret" in finished.stdout, finished.stderr
    python.unlink()
    python.symlink_to(ground.user / "letters" / "letter")
    shown = await ground.shell(f"cat {ground.user}/letters/letter", project)
    assert "secret" not in shown


def test_every_link_on_the_way_is_found_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "a").symlink_to("real")
    (tmp_path / "real" / "b").symlink_to("../a/deep")
    (tmp_path / "real" / "deep" / "loop").symlink_to("loop")
    assert list(links(tmp_path / "a" / "b" / "x")) == [
        tmp_path / "a",
        tmp_path / "real" / "b",
        tmp_path / "a",
    ]
    assert len(list(links(tmp_path / "real" / "deep" / "loop"))) == 40


# Masks


@inside
async def test_no_folder_around_a_mask_can_be_moved(ground: Ground) -> None:
    for name in (".config/gh/hosts", ".local/share/keyrings/login", ".cargo/credentials"):
        executable(ground.user / name, "secret")
    (ground.root / "way").symlink_to(ground.user)
    for named in (ground.user, ground.root / "way"):
        for folder in (".config", ".local", ".local/share", ".cargo", ".ssh", ".config/gh"):
            said = await ground.shell(f"cd $1; mv -T {folder} {folder}2", named)
            assert "busy" in said, (named, folder, said)
        said = await ground.shell("cd $1; cat */*/hosts .c*/*/hosts .c*/cred*; echo x > .cargo/x")
        assert "secret" not in said
    assert await ground.shell("cd $1; echo x > .config/x; cat .config/x", ground.user) == "x\n"


@inside
async def test_no_folder_around_what_is_read_only_can_be_moved(ground: Ground) -> None:
    """Or a child could put a program of its own at the place of the one that is started."""
    bin_folder = ground.user / "tools" / "it" / "bin"
    executable(bin_folder / "servant", '#!/bin/sh\nmv "$1/tools" "$1/moved"\n')
    here = Ground(root=ground.root, search=f"{bin_folder}:{SYSTEM_PATH}")
    finished = await here.run("servant", str(ground.user))
    assert b"busy" in finished.stderr


# Each place comes after what is around it, and what is hidden lies in both of them.
LAID = (
    "--unshare-net --symlink /of/tmp /tmp --bind /u /u --bind /u /l --ro-bind /r /r "
    "--proc /proc --dev /dev --bind /u/a /u/a --bind /u/a /l/a "
    "--bind /of/home /of/home --bind /of/tmp /of/tmp --bind /u/a/b /u/a/b --bind /u/a/b /l/a/b "
    "--ro-bind /dev/null /u/a/f --ro-bind /dev/null /l/a/f "
    "--tmpfs /r/s/t --tmpfs /u/a/b/c --tmpfs /l/a/b/c"
)


def test_the_folders_between_a_mask_and_what_may_be_written_are_laid_onto_themselves() -> None:
    confinement = Confinement(
        home=Path("/of/home"),
        tmp=Path("/of/tmp"),
        cwd=Path("/"),
        mounts=(
            Mount(Path("/u"), Path("/u"), writable=True),
            Mount(Path("/u"), Path("/l"), writable=True),
            Mount(Path("/r"), Path("/r")),
        ),
        masks=(
            *(Mask(Path("/u/a/b/c")), Mask(Path("/u/a/b/c/d/e")), Mask(Path("/of"))),
            *(Mask(Path("/u/a/f"), folder=False), Mask(Path("/r/s/t"))),
        ),
    )
    words = command_line(confinement, ("/x",), Bubblewrap("bwrap"))
    line = " ".join(words[words.index("ALL") + 1 : words.index("--remount-ro")])
    assert line == LAID


@inside
async def test_folders_of_keys_that_are_not_there_yet_are_hidden_too(ground: Ground) -> None:
    (ground.user / ".config").mkdir()
    said = await ground.shell(
        "cd $1; for one in .ssh .aws .config/gh; do echo x > $one/planted; done", ground.user
    )
    assert said.count("Read-only") == 3, said
    made = ground.user / ".ssh"
    assert (made.stat().st_mode & 0o777, list(made.iterdir())) == (0o700, [])
    untouched = ground.root / "elsewhere"
    untouched.mkdir()
    await ground.shell("true", untouched)
    assert list(untouched.iterdir()) == []


@inside
async def test_what_is_only_read_gets_no_new_folders(ground: Ground) -> None:
    executable(ground.root / "x", "")
    await ground.run("true", read=(ground.user,))
    assert list(ground.user.iterdir()) == []


OF_OTHERS = (
    *(".claude/.credentials.json", ".codex/auth.json", ".config/Claude/claude_desktop_config.json"),
    *(".cursor/mcp.json", ".codeium/windsurf/mcp_config.json", ".config/Code/User/mcp.json"),
    *(".gemini/oauth_creds.json", ".config/github-copilot/apps.json"),
)


@inside
@pytest.mark.parametrize("name", OF_OTHERS)
async def test_the_keys_of_programs_that_we_import_from_are_hidden(
    ground: Ground, name: str
) -> None:
    executable(ground.user / name, "secret")
    executable(ground.user / "letter", "a letter")
    said = await ground.shell(f"cd $1; cat letter {name}", ground.user)
    assert said.startswith("a letter")
    assert "secret" not in said


# The whole machine


def folders(*places: str) -> list[Path]:
    """Those of them that this machine has."""
    return [path for path in map(Path, places) if path.is_dir()]


@inside
async def test_who_is_given_the_whole_machine_writes_nothing_that_runs_it(ground: Ground) -> None:
    kept = folders("/etc", "/boot", "/usr", "/sys")
    script = "for place in $3; do touch $place/of-a-child && rm $place/of-a-child && echo $place; "
    script += "done; echo x > $2/written"
    said = await ground.shell(script, "/", ground.root, " ".join(map(str, kept)))
    assert said.count("Read-only") == len(kept), said
    assert (ground.root / "written").read_text() == "x\n"


@inside
async def test_the_machine_by_another_name_shows_no_processes_of_others(ground: Ground) -> None:
    (ground.root / "all").symlink_to("/")
    said = await ground.shell(
        "ls $1/proc; ls $1/sys; touch $1/etc/of-a-child && rm $1/etc/of-a-child",
        ground.root / "all",
    )
    assert 0 < len([line for line in said.splitlines() if line.isdigit()]) < 6
    assert "kernel" not in said.splitlines()
    assert "Read-only" in said
