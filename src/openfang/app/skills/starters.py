"""The skill that `openfang skills new` makes: instructions, one tool that works, and its test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_SKILL: Final = """\
---
name: {name}
description: Says how long a text is, in words and minutes. Use it when somebody asks how long a \
text takes to read.
---

# {name}

1. Count with the tool `reading_time`, never by eye.
2. Answer with the minutes first, then the number of words.
"""
_TOML: Final = """\
[skill]
name = "{name}"
version = "0.1.0"
description = "Says how long a text is, in words and minutes. Use it when somebody asks how long \
a text takes to read."
author = ""
license = ""
tags = []

# Run once for each call of a tool: {{"tool": ..., "input": ...}} on standard input, JSON on
# standard output. No network, and its own workspace to write, unless the operator says otherwise.
[runtime]
type = "python"
entry = "main.py"

[[tools.provided]]
name = "reading_time"
description = "Count the words of a text, and the minutes that it takes to read."

[tools.provided.input_schema]
type = "object"
required = ["text"]
additionalProperties = false
properties = {{ text = {{ type = "string" }} }}

# Handed to the program as a variable of that name; the operator sets it below
# [skills.{name}.config].
[config.WORDS_PER_MINUTE]
description = "How fast somebody reads."
default = 200
"""
_MAIN: Final = '''\
"""The tool of this skill: a question on standard input, its answer on standard output."""

import json
import os
import sys


def reading_time(text, words_per_minute):
    """Count the words of a text, and the minutes that it takes to read."""
    words = len(text.split())
    return {"words": words, "minutes": round(words / words_per_minute, 1)}


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    pace = float(os.environ.get("WORDS_PER_MINUTE", "200"))
    json.dump(reading_time(asked["input"]["text"], pace), sys.stdout)
'''
_TEST: Final = '''\
"""Run it in this folder: python -m unittest (or pytest)."""

import json
import subprocess
import sys
import unittest
from pathlib import Path

from main import reading_time

MAIN = Path(__file__).with_name("main.py")


class ReadingTime(unittest.TestCase):
    def test_words_and_minutes_are_counted(self):
        self.assertEqual(reading_time("a few words", 2), {"words": 3, "minutes": 1.5})

    def test_the_program_answers_as_it_is_asked(self):
        asked = json.dumps({"tool": "reading_time", "input": {"text": "a few words"}})
        done = subprocess.run(
            [sys.executable, MAIN, "reading_time"],
            input=asked, capture_output=True, text=True, check=True,
        )
        self.assertEqual(json.loads(done.stdout)["words"], 3)


if __name__ == "__main__":
    unittest.main()
'''


def new_skill(name: str) -> Mapping[str, str]:
    """Give the files of a new skill."""
    return {
        "SKILL.md": _SKILL.format(name=name),
        "skill.toml": _TOML.format(name=name),
        "main.py": _MAIN,
        "test_main.py": _TEST,
    }
