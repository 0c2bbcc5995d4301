"""What a person has who has used other programs before: their files, as these write them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

ECHO: Final = str(Path(__file__).parents[1] / "sources/mcp/peers/echo.py")
TOKEN: Final = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
HEADER: Final = "sk_live_9876543210zyxwvutsrqponmlkjihgfe"
NOTES: Final = {
    "command": sys.executable,
    "args": [ECHO, "tools=list_notes,get_note"],
    "env": {"NOTES_TOKEN": TOKEN},
}

_CLAUDE_DESKTOP: Final = {"globalShortcut": "Ctrl+Space", "mcpServers": {"notes": NOTES}}
_CLAUDE_CODE: Final[dict[str, Any]] = {
    "numStartups": 42,
    "autoUpdates": True,
    "projects": {
        "/srv/shop": {
            "allowedTools": [],
            "mcpServers": {
                "shop": {
                    "type": "stdio",
                    "command": sys.executable,
                    "args": [ECHO, "tools=get_shop"],
                }
            },
        }
    },
    "mcpServers": {
        "weather": {
            "type": "stdio",
            "command": sys.executable,
            "args": [ECHO, "tools=get_weather"],
            "env": {},
        }
    },
}
_CURSOR: Final = """\
{
  // mine
  "mcpServers": {
    "notes": %s,
    "remote": {"url": "https://tools.invalid/mcp", "headers": {"Authorization": "Bearer %s"}},
  },
}
"""
_VSCODE: Final = """\
{
\t"inputs": [{"type": "promptString", "id": "search-key", "description": "Key", "password": true}],
\t"servers": {
\t\t"search": {
\t\t\t"type": "stdio",
\t\t\t"command": "%s",
\t\t\t"args": ["%s", "tools=search_pages"],
\t\t\t"env": {"SEARCH_KEY": "${input:search-key}"}
\t\t}
\t}
}
"""
_WINDSURF: Final = {
    "mcpServers": {"plans": {"serverUrl": "https://plans.invalid/mcp", "disabled": True}}
}
_CODEX: Final = """\
model = "gpt-5-codex"
approval_policy = "on-request" # mine

[mcp_servers.bank]
command = "%s"
args = ["%s", "tools=create_payment,get_balance"]
startup_timeout_sec = 20

[mcp_servers.bank.env]
BANK_LEVEL = "debug"

[tui]
notifications = true
"""
_GEMINI: Final = {
    "theme": "Default",
    "mcpServers": {
        "sums": {
            "command": sys.executable,
            "args": [ECHO, "tools=get_sum,get_product"],
            "env": {"SUMS_TOKEN": "$SUMS_TOKEN"},
            "includeTools": ["get_sum"],
            "timeout": 30000,
            "trust": True,
        }
    },
}
_ZED: Final = """\
// Zed settings
{
  "theme": "One Dark",
  "context_servers": {
    "docs": {
      "source": "custom",
      "command": "%s",
      "args": ["%s", "tools=read_docs"],
      "env": {},
    },
    "older": {
      "command": {"path": "%s", "args": ["%s", "tools=read_older"], "env": {}},
      "settings": {},
    },
  },
}
"""
_PROJECT: Final = {
    "mcpServers": {"folder": {"command": sys.executable, "args": [ECHO, "tools=get_folder"]}}
}


def write_clients(user: Path, project: Path) -> dict[str, Path]:
    """Write the files of every client, and one of a project; by the word for each client."""
    python = sys.executable
    texts = {
        ".config/Claude/claude_desktop_config.json": json.dumps(_CLAUDE_DESKTOP, indent=2),
        ".claude.json": json.dumps(_CLAUDE_CODE, indent=2) + "\n",
        ".cursor/mcp.json": _CURSOR % (json.dumps(NOTES), HEADER),
        ".config/Code/User/mcp.json": _VSCODE % (python, ECHO),
        ".codeium/windsurf/mcp_config.json": json.dumps(_WINDSURF),
        ".codex/config.toml": _CODEX % (python, ECHO),
        ".gemini/settings.json": json.dumps(_GEMINI, indent=4),
        ".config/zed/settings.json": _ZED % (python, ECHO, python, ECHO),
    }
    words = ("claude-desktop", "claude-code", "cursor", "vscode", "windsurf", "codex", "gemini")
    for place, text in texts.items():
        (user / place).parent.mkdir(parents=True, exist_ok=True)
        (user / place).write_text(text)
    project.mkdir(parents=True, exist_ok=True)
    (project / ".mcp.json").write_text(json.dumps(_PROJECT))
    return dict(zip((*words, "zed"), (user / place for place in texts), strict=True))
