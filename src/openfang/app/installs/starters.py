"""The extension that `openfang ext new` makes: one tool that works, and its test."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from openfang.core.errors import Conflict, HomeError
from openfang.host.private import write_private

if TYPE_CHECKING:
    from collections.abc import Mapping

_PRIVATE: Final = 0o700
_PYTHON: Final = '''\
"""The tools of this extension: each decorated function is a capability of manifest.json."""

from openfang.extension import tool


@tool
def count_words(text: str) -> dict[str, int]:
    """Count the words and the characters of a text."""
    return {"words": len(text.split()), "characters": len(text)}
'''
_PYTHON_TEST: Final = '''\
"""Run it in this folder: python -m unittest (or pytest)."""

import unittest

from main import count_words


class CountWords(unittest.TestCase):
    def test_words_are_counted(self):
        self.assertEqual(count_words("a few words"), {"words": 3, "characters": 11})

    def test_an_empty_text_has_none(self):
        self.assertEqual(count_words(""), {"words": 0, "characters": 0})


if __name__ == "__main__":
    unittest.main()
'''
_NODE: Final = """\
// The tools of this extension: each exported function is a capability of manifest.json.

/** Count the words and the characters of a text. */
export function count_words({ text }) {
  return { words: text.split(/\\s+/).filter(Boolean).length, characters: text.length };
}
"""
_NODE_TEST: Final = """\
// Run it in this folder: node --test
import assert from "node:assert/strict";
import { test } from "node:test";

import { count_words } from "./main.js";

test("words are counted", () => {
  assert.deepEqual(count_words({ text: "a few words" }), { words: 3, characters: 11 });
});

test("an empty text has none", () => {
  assert.deepEqual(count_words({ text: "" }), { words: 0, characters: 0 });
});
"""
_README: Final = """\
# {id}

An extension of OpenFang. Its tools are declared in `manifest.json` and written in `{file}`.

Test it: `{test}`

Check it: `openfang ext check .`

Install it, look at what it would be allowed to do, and accept it:

    openfang ext install .
    openfang ext enable {id}

Call it:

    openfang tools call ext:{id}:count_words --args '{{"text": "a few words"}}'

After a change, install it again: what was accepted stays in force until the new one is.
"""


def id_of(folder: str) -> str:
    """Make an id of a folder's name."""
    return re.sub(r"[^A-Za-z0-9]+", "-", Path(folder).resolve().name).strip("-").lower()[:64]


def new_extension(id_: str, *, node: bool = False) -> Mapping[str, str]:
    """Give the files of a new extension."""
    file = "main.js" if node else "main.py"
    test = "node --test" if node else "python -m unittest"
    readme = _README.format(id=id_, file=file, test=test)
    files = {"manifest.json": _manifest(id_, node=node), "README.md": readme}
    if node:
        return {**files, file: _NODE, "main.test.js": _NODE_TEST, "package.json": _PACKAGE}
    return {**files, file: _PYTHON, "test_main.py": _PYTHON_TEST}


_PACKAGE: Final = '{\n  "type": "module",\n  "private": true\n}\n'


def _manifest(id_: str, *, node: bool) -> str:
    counts = {"type": "integer", "minimum": 0}
    manifest: dict[str, Any] = {
        "id": id_,
        "name": id_,
        "version": "0.1.0",
        "description": "Counts words.",
        "author": "",
        "license": "",
        "runtime": "node" if node else "python",
        "capabilities": [
            {
                "name": "count_words",
                "description": "Count the words and the characters of a text.",
                "input_schema": {
                    "type": "object",
                    "properties": {"text": {"type": "string"}},
                    "required": ["text"],
                    "additionalProperties": False,
                },
                "output_schema": {
                    "type": "object",
                    "properties": {"words": counts, "characters": counts},
                    "required": ["words", "characters"],
                },
                "risk": "LOW",
                "side_effect_tags": [],
            }
        ],
        "permissions": {},
    }
    return json.dumps(manifest, indent=2) + "\n"


def write_extension(folder: str, files: Mapping[str, str]) -> Path:
    """Write the files into a new or empty folder."""
    place = Path(folder).resolve()
    try:
        place.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        if any(place.iterdir()):
            raise Conflict(f"{place} is not empty.", way_out="name a folder that is new")
        for name, text in files.items():
            write_private(place / name, text)
    except OSError as error:
        raise HomeError(
            f"{place} cannot be written: {error.strerror}.", way_out="name another folder"
        ) from error
    return place
