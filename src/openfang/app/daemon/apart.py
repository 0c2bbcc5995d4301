"""The daemon as a process in the background: what `openfang start --detach` starts.

No command line is read and nothing is printed: whoever waits hears once how it went, the rest goes
to the log. `python -m openfang.app.daemon.apart '{"listen": null, "any_port": false}'`.
"""

from __future__ import annotations

import gc
import os
import sys


def main() -> int:
    """Serve the home of the environment until told to end."""
    gc.disable()  # imports allocate much and free nothing
    import anyio  # noqa: PLC0415 - after the line above
    import orjson  # noqa: PLC0415 - as above

    from openfang.app.daemon.background import log_file  # noqa: PLC0415 - as above
    from openfang.app.daemon.process import Wishes, run_daemon  # noqa: PLC0415 - as above
    from openfang.app.home.paths import Home  # noqa: PLC0415 - as above
    from openfang.config.home import find_home  # noqa: PLC0415 - as above
    from openfang.core.errors import HomeError, OpenFangError  # noqa: PLC0415 - as above
    from openfang.host.detach import last_words, speak  # noqa: PLC0415 - as above

    home = Home(find_home(os.environ))
    wishes = Wishes(
        told=lambda daemon, warnings: speak(
            os.environ, orjson.dumps({"daemon": daemon, "warnings": warnings})
        ),
        log_file=log_file(home.path),
        **orjson.loads(sys.argv[1]),
    )
    gc.enable()
    try:
        options = {"use_uvloop": True}
        anyio.run(run_daemon, home, os.environ, wishes, backend="asyncio", backend_options=options)
    except (OpenFangError, OSError) as cause:
        error = cause if isinstance(cause, OpenFangError) else HomeError(f"{cause}.")
        body = {"message": error.message, "way_out": error.way_out}
        last_words(os.environ, orjson.dumps({"error": body}))
        sys.stderr.write(f"{error.message}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
