"""What each code of an error means, and what usually helps: the page of errors is made of this.

An error itself has more to say: its message has the value in it, and its way out the command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Code(NamedTuple):
    """When it is told, and what helps."""

    when: str
    helps: str


CODES: Final[Mapping[str, Code]] = {
    "unauthenticated": Code(
        "no credential, or one that is not known, has expired or was revoked",
        "a key that is in force: `openfang keys create NAME`, or in the home the file `key`",
    ),
    "unknown_tool": Code(
        "no such tool, or none that this caller may see",
        "`openfang tools list` with the same key; a toolset or a grant that has it",
    ),
    "invalid_arguments": Code(
        "too large, too deep, or not what the schema asks for",
        "`openfang tools show NAME` has the schema; the message names the argument",
    ),
    "guard": Code(
        "too deep, too often, too much, or the source keeps failing",
        "wait as long as `Retry-After` says, or raise what `rule` names, in `[limits]`, `[guard]` "
        "or `[loops]`",
    ),
    "policy_violation": Code(
        "a gate said no, or one of the operator's rules (`rule:NAME`), or an approval was denied",
        "`openfang explain TOOL` shows the step that refuses, and what would change it",
    ),
    "flow": Code(
        "what the call carries may not reach what it would reach",
        "let a person name the target, or begin a run that has not read what it carries",
    ),
    "parked": Code(
        "a person has to answer first",
        "`openfang approvals approve ID`, then the identical call again",
    ),
    "audit_unavailable": Code(
        "it could not be recorded, so it did not happen",
        "room on the disk, a home that can be written; `openfang doctor`",
    ),
    "refused": Code("any other refusal", "the rule that it names"),
    "timeout": Code(
        "it ran longer than it may",
        "`timeout_secs` of the server or the agent; a smaller request",
    ),
    "cancelled": Code("somebody stopped it", "`openfang audit tail` shows how far it got"),
    "source_failed": Code(
        "the tool, or the server behind it, broke",
        "`openfang servers test NAME` and `openfang servers logs NAME`",
    ),
    "launch_failed": Code(
        "a program could not be started",
        "the program on the PATH of the daemon; `openfang servers test NAME`",
    ),
    "sandbox_missing": Code(
        "a program has to run in a sandbox, and this machine has none",
        'install bubblewrap, or `sandbox = "auto"` where it may run without',
    ),
    "model_failed": Code(
        "what an agent thinks with did not answer: a key, an address, a limit or a failure of the "
        "provider",
        "`openfang doctor` tries address and key; a fallback model in the manifest",
    ),
    "fetch_failed": Code(
        "a server could not be reached, or did not answer in HTTP",
        "whether it is there, as seen from the daemon; a proxy in between",
    ),
    "unrecorded": Code(
        "it ran, and its ending could not be written yet; the result is withheld",
        "room on the disk; the ending is written with the next record that can be",
    ),
    "failed": Code("any other failure", "the message; `openfang audit tail`"),
    "config": Code(
        "a configuration file is wrong: file, line, key and what was expected",
        "`openfang config check` finds all mistakes at once",
    ),
    "home": Code(
        "the home or its database cannot be used",
        "`openfang doctor`; `openfang init` makes one; a backup",
    ),
    "daemon_unreachable": Code(
        "the daemon does not answer, or not as it should",
        "`openfang status`; `openfang start --detach`",
    ),
    "secrets": Code(
        "the master key or the secret store cannot be used",
        "the key where `secrets.keyring` says; `openfang doctor`; a backup of the home has both",
    ),
    "archive": Code(
        "a backup is damaged, was changed, or leads out of its folder",
        "another backup; copy the file again",
    ),
    "not_found": Code("what was asked for by name does not exist", "the command that lists them"),
    "conflict": Code(
        "what was asked for contradicts what is there",
        "another name, or remove what is there first",
    ),
    "rejected": Code(
        "a request that no edge can serve: malformed, too large, from a foreign page",
        "`GET /api/openapi.json` says what is taken; `rule` names the check",
    ),
    "address_refused": Code(
        "an address may not be reached",
        "`allow_private` where it is yours; metadata services are never reached",
    ),
    "sign_in_failed": Code(
        "a server wants a sign-in that could not be made, or not without a person",
        "`openfang servers login NAME`",
    ),
    "file_refused": Code(
        "a path leads out of its folder, or to something that is not a file",
        "a path inside the workspace, or one that is granted",
    ),
    "variable_refused": Code(
        "a variable for a child is missing or not allowed",
        "set it where the daemon is started, or `openfang secrets set NAME`",
    ),
    "usage": Code("a command line that makes no sense", "`openfang COMMAND --help`"),
    "error": Code("anything else", "the message; the log of the daemon"),
}
