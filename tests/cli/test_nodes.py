"""`openfang nodes`: whose signatures are believed, once somebody has compared the fingerprint."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest
from tests.cli.conftest import serving

from openfang.app.daemon.discovery import find_daemon_now
from openfang.app.nodes.book import fingerprint
from openfang.app.nodes.trusting import own_fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import Cli

pytestmark = pytest.mark.requirement("C8.4", "C3.9", "C18.1")


@pytest.fixture(scope="module")
def other(make_home: Callable[[], Cli]) -> Iterator[Cli]:
    """A node that serves, without A2A."""
    cli = make_home()
    with serving(cli):
        yield cli


def address(cli: Cli) -> str:
    found = find_daemon_now(cli.home)
    assert found
    return found.url


def own(cli: Cli) -> str:
    return own_fingerprint(cli.home, os.environ)


def test_a_node_is_believed_once_its_fingerprint_is_said(fresh: Cli, other: Cli) -> None:
    url, print_ = address(other), own(other)
    done = fresh(
        *("nodes", "trust", url, "--name", "two", "--allow-private"),
        *("--yes", "--fingerprint", print_, "--comes-as", "friend"),
    )
    assert done.code == 0, done.err
    shown = fresh("nodes", "list", "--json").json
    assert shown["this"] == own(fresh) != print_
    entry = {"name": "two", "url": url, "fingerprint": print_}
    assert shown["nodes"] == [{**entry, "allow_private": True, "comes_as": "friend"}]
    assert fresh("config", "check").code == 0
    assert print_[:12] in fresh("nodes", "list").out
    assert fresh("nodes", "remove", "two").code == 0
    assert fresh("nodes", "list", "--json").json["nodes"] == []
    assert fresh("nodes", "remove", "two").code == 1


def test_a_person_is_asked_and_nothing_is_written_without_a_yes(fresh: Cli, other: Cli) -> None:
    trust = ("nodes", "trust", address(other), "--name", "two", "--allow-private")
    before = (fresh.home / "config.toml").read_text()
    for answer in ("", "n\n", "no\n"):
        done = fresh(*trust, stdin=answer)
        assert done.code == 3
        assert own(other) in done.out
    assert (fresh.home / "config.toml").read_text() == before
    assert fresh(*trust, stdin="y\n").code == 0
    assert [one["name"] for one in fresh("nodes", "list", "--json").json["nodes"]] == ["two"]


def test_another_fingerprint_or_none_is_refused(fresh: Cli, other: Cli) -> None:
    trust = ("nodes", "trust", address(other), "--allow-private", "--yes")
    assert fresh(*trust).code == 2
    for wrong in (own(fresh), "0" * 16):
        assert fresh(*trust, "--fingerprint", wrong).code == 3
    assert fresh(*trust, "--fingerprint", own(other)[:8]).code == 2
    assert fresh("nodes", "list", "--json").json["nodes"] == []


def test_a_private_address_is_fetched_from_only_if_it_is_said(fresh: Cli, other: Cli) -> None:
    done = fresh("nodes", "trust", address(other), stdin="y\n")
    assert done.code != 0
    assert "way out: if that is where it is: --allow-private" in done.err
    assert fresh("nodes", "list", "--json").json["nodes"] == []


def test_another_key_of_a_node_that_is_believed_is_told_and_what_was_said_stays(
    fresh: Cli, other: Cli
) -> None:
    trust = ("nodes", "trust", address(other), "--name", "two", "--allow-private")
    assert fresh(*trust, "--comes-as", "friend", stdin="y\n").code == 0
    again = fresh(*trust, stdin="y\n")
    assert "another key" not in again.err
    assert fresh("nodes", "list", "--json").json["nodes"][0]["comes_as"] == "friend"
    config = fresh.home / "config.toml"
    written = re.search(r'public_key = "(.*)"', config.read_text())
    assert written
    config.write_text(config.read_text().replace(written[1], "A" * 43))
    done = fresh(*trust, stdin="n\n")
    assert done.code == 3
    assert f"another key until now: {fingerprint(bytes(32))}" in done.err


def test_what_is_no_address_is_told_as_it_should_be_written(fresh: Cli) -> None:
    done = fresh("nodes", "trust", "127.0.0.1:50051")
    assert done.code == 2
    assert "https://node.example" in done.err


def test_who_is_no_node_is_not_believed(fresh: Cli) -> None:
    done = fresh("nodes", "trust", "http://127.0.0.1:9", "--allow-private", stdin="y\n")
    assert done.code != 0
    assert "way out: is it started there" in done.err
    assert fresh("nodes", "list", "--json").json["nodes"] == []
