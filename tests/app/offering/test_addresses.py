"""Addresses of several servers in one place, and templates: pure."""

from __future__ import annotations

from time import perf_counter
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.app.offering.addresses import Addresses, Library
from openfang.app.offering.prompts import Prompts, Repertoire
from openfang.app.offering.templates import could_be, quoted

pytestmark = pytest.mark.requirement("C3.10")


@pytest.mark.parametrize(
    ("template", "address"),
    [
        ("file:///{name}", "file:///a%20b"),
        ("file:///{name}", "file:///"),
        ("x://{a}/{b}.txt", "x://1/2.txt"),
        ("x://{+path}", "x://a/b?c#d"),
        ("x://a{/more}", "x://a/b/c"),
        ("x://a{?q,w}", "x://a?q=1&w=2"),
        ("x://a{?q}", "x://a"),
        ("x://a?z=1{&q}", "x://a?z=1&q=2"),
        ("x://a{#part}", "x://a#b"),
        ("x://a{.form}", "x://a.json"),
        ("x://a{;p}", "x://a;p=1"),
        ("plain://x", "plain://x"),
        ("x://(a)*/{b}", "x://(a)*/é"),
    ],
)
def test_an_address_may_come_of_its_template(template: str, address: str) -> None:
    assert could_be(template, address)


@pytest.mark.parametrize(
    ("template", "address"),
    [
        ("file:///{name}", "file:///a/b"),
        ("file:///{name}", "file:///a?b"),
        ("x://{a}.txt", "x://1.txtx"),
        ("x://a{?q}", "x://ab"),
        ("plain://x", "plain://X"),
        ("plain.x", "plainyx"),
        ("x" * 2001, "x" * 2001),
    ],
)
def test_another_does_not(template: str, address: str) -> None:
    assert not could_be(template, address)


def test_the_worst_template_takes_no_time() -> None:
    begun = perf_counter()
    assert not could_be("x://" + "{a}" * 400 + "!", "x://" + "a" * 20_000)

    assert perf_counter() - begun < 2


def test_a_template_is_quoted_but_for_its_expressions() -> None:
    assert quoted("item://a/{id}?x={+y}&z") == "item%3A%2F%2Fa%2F{id}%3Fx%3D{+y}%26z"
    assert quoted("{a}{b}") == "{a}{b}"
    assert quoted("") == ""


ADDRESSES = st.sampled_from(["x://1", "x://2", "y://1", "openfang://servers/a/x", "http://h/1"])


def library(server: str, found: list[str]) -> Library:
    return Library(server=server, resources=[{"uri": uri} for uri in found])


LIBRARIES = st.lists(
    st.builds(library, st.sampled_from("abc"), st.lists(ADDRESSES, max_size=4)),
    unique_by=lambda one: one.server,
    max_size=3,
).map(tuple)


@settings(max_examples=300)
@given(LIBRARIES)
def test_what_is_listed_is_found_again_each_with_its_server(libraries: tuple[Library, ...]) -> None:
    addresses = Addresses(libraries)
    listed = [one["uri"] for one in addresses.resources]
    all_of_them = {(one.server, entry["uri"]) for one in libraries for entry in one.resources}

    assert len(set(listed)) == len(listed) == len(all_of_them)
    assert {addresses.find(uri) for uri in listed} == all_of_them
    for server, uri in all_of_them:
        alias = f"openfang://servers/{server}/{quote(uri, safe='')}"
        assert addresses.find(alias) == (server, uri)
        assert addresses.here(server, uri) in listed


def test_what_is_not_exposed_is_not_there() -> None:
    both = library("a", ["x://1", "y://1"])
    addresses = Addresses((both,), ("x://*",))

    assert [one["uri"] for one in addresses.resources] == ["x://1"]
    assert addresses.find("x://2") == ("a", "x://2")
    assert addresses.find("y://1") is addresses.find("openfang://servers/a/y%3A%2F%2F1") is None
    assert addresses.known_by("a", "y://1") == ()
    assert Addresses((both,), ()).resources == ()


@pytest.mark.requirement("C4.10")
@pytest.mark.parametrize(
    "address",
    [
        "file:///docs/../../etc/passwd",
        "file:///docs/..",
        "file:///docs/./../x",
        "file:///docs/%2e%2e/%2E./etc/passwd",
        "file:///docs/..%2fetc",
        "file:///docs/%252e%252e/etc",
        "file:///docs/..\\etc",
        "file:///docs/..;x/etc",
        "file:///docs/a?of=../../etc",
        "file:///docs/%00",
        "file:///docs/%c0%ae%c0%ae/etc",
        "file:///docs/%25252525252e",
        "file:///%64ocs/../docs/x",
        "file:///%64ocs/x",
    ],
)
def test_no_address_leads_out_of_what_is_exposed(address: str) -> None:
    addresses = Addresses((library("a", [address, "x://1"]),), ("file:///docs/*",))

    assert addresses.find(address) is None
    assert addresses.find(f"openfang://servers/a/{quote(address, safe='')}") is None
    assert addresses.find_template(address) is None
    assert addresses.resources == ()
    assert addresses.known_by("a", address) == ()
    assert Addresses(addresses.libraries).find(address) == ("a", address)


@pytest.mark.requirement("C4.10")
@pytest.mark.parametrize(
    "address", ["x:///a%20b/c", "x:///a%20b/..c", "x:///a%20b/c..d/e", "x:///a%20b/%C3%A9?f=1"]
)
def test_what_is_quoted_is_exposed_as_it_is_read(address: str) -> None:
    for exposed in ("x:///a%20b/*", "x:///*"):
        assert Addresses((library("a", [address]),), (exposed,)).find(address) == ("a", address)


def test_no_server_takes_an_address_of_ours() -> None:
    ours = ["openfang://results/1", "openfang://servers/b/x%3A%2F%2F1"]
    addresses = Addresses((library("a", ours), library("b", ["x://1"])))

    assert [addresses.find(one["uri"]) for one in addresses.resources[:2]] == [
        ("a", uri) for uri in ours
    ]
    assert addresses.find(ours[1]) == ("b", "x://1")
    assert addresses.find(ours[0]) is None
    link = {"type": "resource_link", "uri": ours[0]}
    assert addresses.readdressed("a", (link,))[0]["uri"] == addresses.resources[0]["uri"]


def test_entries_without_an_address_are_left_out() -> None:
    odd = Library(server="a", resources=[{}, {"uri": 1}, {"uri": "x://1"}, {"uri": "x://1"}])

    assert [one["uri"] for one in Addresses((odd,)).resources] == ["x://1"]


def test_prompts_that_want_one_name_all_get_one() -> None:
    entries = [{"name": "a b"}, {"name": "a-b"}, {"name": "A_b"}, {"name": "a b"}, {}]
    prompts = Prompts((Repertoire(server="s", prompts=entries),))
    names = [one["name"] for one in prompts.listed]

    assert names[0] == "mcp_s_a_b"
    assert all(name.startswith("mcp_s_a_b_") for name in names[1:])
    assert [prompts.find(name) for name in names] == [("s", "a b"), ("s", "a-b"), ("s", "A_b")]
    assert prompts.find("a b") is None


def test_prompts_of_a_server_that_is_seen_through_keep_their_names() -> None:
    repertoires = (
        Repertoire(server="a", prompts=[{"name": "mcp_b_x"}]),
        Repertoire(server="b", prompts=[{"name": "x"}, {"name": "mcp_a_mcp_b_x"}]),
    )
    named = {one["name"] for one in Prompts(repertoires, "b").listed}

    assert {"x", "mcp_a_mcp_b_x"} < named
    assert len(named) == 3
