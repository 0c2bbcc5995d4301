"""`openfang demo`: one call allowed, one refused, one that asks, one explained, and the record."""

from __future__ import annotations

import json
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openfang.app.attach import open_session
from openfang.app.home.new import init_home
from openfang.cli.audit import show_events, show_verification
from openfang.cli.call import summary
from openfang.cli.explain import show_explanation
from openfang.cli.output import clean, folded, paint, say
from openfang.cli.results import readable
from openfang.cli.session import run_async
from openfang.cli.shell import preparation
from openfang.config.home import find_home
from openfang.core.calls import Mode
from openfang.core.errors import CallRefused, OpenFangError, Parked
from openfang.core.log import Search
from openfang.core.session import Options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.session import Session

_FOLDER = ".openfang"
_SHOWN_RECORDS = 12
_COLOURS = {"ALLOWED": "green", "REFUSED": "red", "ASKS": "yellow", "EXPLAINED": "bold"}


def demo() -> None:
    """Make four calls on a home in this folder, and show what became of each."""
    environ = dict(os.environ)
    environ.setdefault("OPENFANG_HOME", str(Path.cwd() / _FOLDER))
    home, fresh = init_home(find_home(environ), environ)
    say(f"Home: {home.path}{' (new)' if fresh else ''}")
    run_async(partial(_show, environ))
    _what_to_try(environ)


async def _show(environ: Mapping[str, str]) -> None:
    async with open_session(environ) as session:
        await _allowed(session)
        await _refused(session)
        await _asked(session)
        await _explained(session)
        await _recorded(session)


async def _allowed(session: Session) -> None:
    _title("ALLOWED", "a file is written and read back, in the caller's own workspace")
    await _call(session, "file_write", {"path": "notes.txt", "content": "Written by the demo."})
    await _call(session, "file_read", {"path": "notes.txt"})


async def _refused(session: Session) -> None:
    _title("REFUSED", "while planning, nothing with a side effect runs")
    planning = Options(mode=Mode.PLANNING)
    await _call(session, "file_write", {"path": "notes.txt", "content": "no"}, planning)


async def _asked(session: Session) -> None:
    _title("ASKS", "a program runs by a frozen spec, or when a person agrees to this call")
    words = {"command": ["echo", f"It is {time.strftime('%H:%M:%S')}, and a person agreed."]}
    parked = await _call(session, "shell_exec", words)
    if isinstance(parked, Parked):
        say(f"  $ openfang approvals approve {parked.question_id}")
        question = await session.answer(parked.question_id, approve=True)
        say(f"  {question.state.value} by {question.answered_by}, {question.scope.value}")
        await _call(session, "shell_exec", words)


async def _explained(session: Session) -> None:
    _title("EXPLAINED", "the same decision, step by step, and nothing happens")
    arguments = {"command": ["echo", "hello"]}
    say(f"  $ openfang explain shell_exec --args '{json.dumps(arguments)}'")
    show_explanation(await session.explain("shell_exec", arguments))


async def _recorded(session: Session) -> None:
    say(f"\n{paint('ON RECORD', 'bold', sys.stdout)}: every decision, before anything ran")
    show_events(await session.search(Search(limit=_SHOWN_RECORDS)))
    show_verification(await session.verify())


async def _call(
    session: Session, tool: str, arguments: dict[str, Any], options: Options | None = None
) -> OpenFangError | None:
    """Make a call and print it as the command that would make it, with what became of it."""
    options = options or Options()
    mode = f" --mode {options.mode.value}" if options.mode else ""
    say(f"  $ openfang tools call {tool}{mode} --args '{json.dumps(arguments)}'")
    try:
        result = await session.call(tool, arguments, options)
    except OpenFangError as error:
        await _show_error(session, error)
        return error
    for line in clean(readable(result.content, None)).splitlines():
        say(f"    {line}")
    say(f"    {paint(summary(result), 'dim', sys.stdout)}")
    return None


async def _show_error(session: Session, error: OpenFangError) -> None:
    for line in folded(clean(f"{error.message}\nway out: {error.way_out}"), sys.stdout, beside=4):
        say(f"    {line}")
    last = await session.search(Search(limit=1))
    rule = error.rule if isinstance(error, CallRefused) else error.code
    say(
        f"    {paint(f'{error.code} | rule {rule} | audit {last[-1].audit_id}', 'dim', sys.stdout)}"
    )


def _title(word: str, text: str) -> None:
    say(f"\n{paint(word, _COLOURS[word], sys.stdout)}: {text}")


def _what_to_try(environ: Mapping[str, str]) -> None:
    home = find_home(environ)
    say("\nTry it yourself:")
    for line in preparation(home):
        say(f"  {line}")
    say("  openfang tools list")
    say("  openfang tools call system_time --json")
    say("""  openfang explain shell_exec --args '{"command": "ls"}'""")
    say("  openfang audit tail")
