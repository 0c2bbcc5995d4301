"""An agent that hands an address to somebody else's tool is held to its network grants."""

from __future__ import annotations

from typing import Any

import pytest

from openfang.core.calls import Call, Caller, Grants
from openfang.core.decisions import ALLOW, Deny
from openfang.core.ids import Kind, tool_id
from openfang.core.tools import Sink, Tool
from openfang.policy.gates import GrantGate

pytestmark = pytest.mark.requirement("C6.1")
GATE = GrantGate({})
TOOL = Tool(
    id=tool_id(Kind.MCP, "web", "get"),
    kind=Kind.MCP,
    source="web",
    name="get",
    wire_name="web_get",
    sink=Sink(targets=("request.goal",)),
)
READ = Tool(
    id=tool_id(Kind.MCP, "web", "resources/read"),
    kind=Kind.MCP,
    source="web",
    name="resources/read",
    operation=True,
)


def asked(tool: Tool, arguments: dict[str, Any], *network: str) -> object:
    grants = Grants(tools=("*",), network=network or ("good.com", "[2001:db8::1]"), agents=())
    return GATE.check(
        tool, Call(tool=tool.id, caller=Caller(id="agent:x", grants=grants), arguments=arguments)
    )


@pytest.mark.parametrize(
    "arguments",
    [
        {"url": "http://evil.com/"},
        {"url": "http://u@evil.com/"},
        {"url": "http://good.com@evil.com/"},
        {"url": "http://evil.com./"},
        {"url": "http://évil.com/"},
        {"url": " http://evil.com/"},
        {"url": "http:/evil.com"},
        {"url": "http:\\\\evil.com"},
        {"url": "ftp://evil.com/"},
        {"url": "gopher://evil.com/"},
        {"url": "file://evil.com/share"},
        {"url": "view-source:http://evil.com/"},
        {"url": "//evil.com/x"},
        {"url": "evil.com"},
        {"url": "http://0x7f.1/"},
        {"url": "http://evil.com/a b"},
        {"url": ["http://good.com/", "http://evil.com/"]},
        {"url": {"address": "evil.com"}},
        {"urls": ["http://evil.com/"]},
        {"URL": "http://evil.com/"},
        {"pageUrl": "evil.com"},
        {"base_uri": "evil.com"},
        {"host": "evil.com"},
        {"host": 2130706433},
        {"domain": "evil.com"},
        {"website": "https://evil.com"},
        {"href": "evil.com"},
        {"website": "evil.com"},
        {"link": "evil.com"},
        {"hostname": "evil.com"},
        {"endpoints": ["evil.com"]},
        {"webhook": "evil.com"},
        {"url2Link": "evil.com"},
        {"page": "git+ssh://evil.com/x"},
        {"target": "http://evil.com"},
        {"target": " HTTPS://evil.com\n"},
        {"request": {"goal": "http://evil.com/a b"}},
        {"deep": [{"er": [{"page": "wss://evil.com/"}]}]},
        {"requests": {"https://evil.com/": "GET"}},
    ],
    ids=repr,
)
def test_an_address_that_is_not_granted_or_cannot_be_read_is_refused(
    arguments: dict[str, Any],
) -> None:
    refused = asked(TOOL, arguments)
    assert isinstance(refused, Deny)
    assert refused.code == "network_not_granted"
    assert "openfang agents edit x" in refused.way_out


@pytest.mark.parametrize(
    "arguments",
    [
        {"url": "http://good.com/a?b=c"},
        {"url": "HTTPS://GOOD.com:8443/"},
        {"url": "ftp://good.com/"},
        {"url": "http://[2001:db8::1]/"},
        {"host": "good.com"},
        {"host": "good.com:22", "port": 22},
        {"urls": ["//good.com/x"], "follow": True, "link": None, "href": ""},
        {"uri": "file:///srv/notes.md"},
        {"path": "notes.txt", "address": "Main Street 1", "curl": "evil.com"},
        {"text": "http://evil.com/ is a bad page"},
        {"count": 3, "list": [1.5, None, True]},
    ],
    ids=repr,
)
def test_what_is_granted_or_is_no_address_passes(arguments: dict[str, Any]) -> None:
    assert asked(TOOL, arguments) is ALLOW


def test_who_may_reach_everything_may_also_reach_what_we_cannot_read() -> None:
    assert asked(TOOL, {"url": "http://u@evil.com/"}, "*") is ALLOW


def test_a_grant_for_a_port_is_none_for_another_protocol() -> None:
    assert asked(TOOL, {"url": "https://good.com/"}, "good.com:443") is ALLOW
    assert isinstance(asked(TOOL, {"url": "ftp://good.com/"}, "good.com:80"), Deny)
    assert asked(TOOL, {"url": "http://good.com/"}, "good.com:80") is ALLOW
    assert asked(TOOL, {"url": "ws://good.com/"}, "good.com:80") is ALLOW
    assert asked(TOOL, {"url": "WSS://good.com/"}, "good.com:443") is ALLOW
    assert isinstance(asked(TOOL, {"url": "wss://good.com/"}, "good.com:80"), Deny)


def test_a_servers_own_resource_is_no_address_unless_it_says_so() -> None:
    assert asked(READ, {"uri": "memo://1"}) is ALLOW
    assert isinstance(asked(READ, {"uri": "https://evil.com/"}), Deny)


def test_an_argument_as_deep_as_can_be_is_looked_into() -> None:
    arguments: dict[str, Any] = {"url": "http://evil.com/"}
    for _ in range(5000):
        arguments = {"in": arguments}
    assert isinstance(asked(TOOL, arguments), Deny)


def test_a_person_is_not_held_to_what_other_peoples_tools_are_told() -> None:
    person = Caller(id="key:me", grants=Grants(tools=("*",)))
    call = Call(tool=TOOL.id, caller=person, arguments={"url": "http://evil.com/"})
    assert GATE.check(TOOL, call) is ALLOW
