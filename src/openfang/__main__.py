"""`openfang`, also as `python -m openfang`: some of it is answered before much is imported."""

from __future__ import annotations

import gc
import sys

from openfang.version import __version__


def main() -> None:
    """Run the command of the command line."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        sys.stdout.write(f"{__version__}\n")
        return
    # Imports allocate much and free nothing: collecting meanwhile is a tenth of a short command.
    gc.disable()
    if arguments[:1] == ["mcp"]:
        from openfang.cli.mcp import at_once  # noqa: PLC0415 - a client waits for its first answer

        if (code := at_once(arguments[1:])) is not None:
            sys.exit(code)
    from openfang.cli.run import run  # noqa: PLC0415 - not needed for what is answered above

    sys.exit(run(arguments))


if __name__ == "__main__":
    main()
