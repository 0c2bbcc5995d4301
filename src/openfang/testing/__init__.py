"""Small real parts for tests: a clock that a test moves, sources made of a table, an open home.

Nothing here pretends. A call made through `open_test_app` takes the pipeline, is recorded in a real
database, and reaches the source's function only with the pipeline's stamp:

    async def test_an_echo_comes_back(tmp_path):
        async def echo(arguments):
            return arguments["text"]

        source = TableSource(Kind.MCP, "demo", {"echo": (foreign_tool("demo", "echo"), echo)})
        async with open_test_app(tmp_path, sources=[source]) as app:
            result = await app.call("mcp:demo:echo", text="hello")
        assert result.text == "hello"
        assert source.reached == 1
"""

from openfang.testing.app import OpenApp, open_test_app
from openfang.testing.clock import ManualClock
from openfang.testing.sources import Function, TableSource, foreign_tool

__all__ = ["Function", "ManualClock", "OpenApp", "TableSource", "foreign_tool", "open_test_app"]
