"""Skills as others write them: read as they are, and refused where it matters, by file and line."""

# ruff: noqa: E501 - a message stands on one line, as it is printed
from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfang.config.front_matter import FrontMatterProblem, split
from openfang.config.skill_files import SkillFile, SkillVariable, read_skill

pytestmark = pytest.mark.requirement("C6.3")

DATA = Path(__file__).parents[1] / "data" / "skills"
HEAD = "---\nname: plain\ndescription: What it is for.\n---\nDo this.\n"


def read(folder: Path) -> SkillFile:
    found = read_skill(folder)
    assert isinstance(found, SkillFile), [str(one) for one in found]
    return found


def problems(folder: Path) -> list[str]:
    found = read_skill(folder)
    assert isinstance(found, list)
    return [str(one) for one in found]


def notes(skill: SkillFile) -> list[str]:
    return [str(one) for one in skill.notes]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a skill called plain."""
    made = tmp_path / "plain"
    made.mkdir()
    return made


def test_the_open_format_is_read_with_all_its_keys() -> None:
    skill = read(DATA / "release-notes")
    assert (skill.name, skill.license) == ("release-notes", "Apache-2.0 (see LICENSE.txt)")
    assert skill.description.startswith("Turns a list of merged changes")
    assert (skill.author, skill.version) == ("the-docs-guild", "2.1")
    assert skill.compatibility == "Needs Python 3.11 or newer for its script."
    assert skill.wishes == ("Read", "Bash(git log:*)", "Bash(git show:*)")
    assert skill.instructions.startswith("# Release notes\n")
    assert (skill.runtime, skill.tools, skill.notes) == (None, (), ())


def test_what_the_claw_family_writes_into_metadata_is_read() -> None:
    skill = read(DATA / "weather-desk")
    assert (skill.emoji, skill.programs) == ("🌦️", ("sh",))
    needed = SkillVariable(name="WEATHER_DESK_UNIT", env="WEATHER_DESK_UNIT", required=True)
    assert skill.variables == (needed,)
    assert skill.extra["homepage"] == "https://weather.example/docs"
    assert skill.extra["user-invocable"] is True


def test_a_colon_in_a_sentence_without_quotes_is_read_and_noted() -> None:
    skill = read(DATA / "review-order")
    assert skill.description == (
        "Reviews a change in a fixed order: first what it is for, then what it breaks."
    )
    assert skill.wishes == ("Read", "Grep", "Glob")
    assert skill.extra == {
        "argument-hint": "[branch]",
        "disable-model-invocation": False,
        "model": "inherit",
    }
    assert notes(skill) == [
        "SKILL.md:3: a sentence without quotes, in which YAML sees more than a sentence"
    ]


def test_a_skill_of_the_seed_has_tools_a_runtime_and_settings() -> None:
    skill = read(DATA / "word-count")
    assert (skill.runtime, skill.entry) == ("python", "main.py")
    (tool,) = skill.tools
    assert tool.name == "count"
    assert tool.input_schema["required"] == ["text"]
    assert skill.instructions == "Count words with `count`, never by eye."
    assert skill.variables == (
        SkillVariable(
            name="WORD_MARK",
            description="What parts two words.",
            env="WORD_COUNT_MARK",
            default=" ",
        ),
    )
    assert skill.network


def test_where_both_files_are_there_the_seeds_leads_and_the_other_instructs(folder: Path) -> None:
    (folder / "skill.toml").write_text(
        '[skill]\nname = "plain"\nversion = "3.0.0"\ndescription = "Of the seed."\n', "utf-8"
    )
    (folder / "SKILL.md").write_text(HEAD, "utf-8")
    skill = read(folder)
    assert (skill.version, skill.description) == ("3.0.0", "Of the seed.")
    assert skill.instructions == "Do this."


@pytest.mark.parametrize(
    "text",
    [
        HEAD,
        "\ufeff" + HEAD,
        HEAD.replace("\n", "\r\n"),
        HEAD.replace("---\nDo", "...\nDo"),
        HEAD.replace("What it is for.", ">\n  What it\n  is for.\n"),
        HEAD.replace("What it is for.", "|-\n  What it\n  is for."),
        HEAD.replace(" What it is for.", "\n  What it\n  is for."),
        HEAD.replace("---\nDo", "unknown: {a: [1, 2]}\n---\nDo"),
        "\n" + HEAD,
    ],
)
def test_the_same_is_read_however_it_is_written(folder: Path, text: str) -> None:
    (folder / "SKILL.md").write_bytes(text.encode())
    skill = read(folder)
    assert (skill.name, skill.description) == ("plain", "What it is for.")
    assert skill.instructions == "Do this."


def test_a_colon_further_down_in_a_sentence_of_several_lines_is_read(folder: Path) -> None:
    text = HEAD.replace(" What it is for.", "\n  It pairs with another: that first,\n  then this.")
    (folder / "SKILL.md").write_text(text.replace("---\nDo", "license: X\n---\nDo"), "utf-8")
    skill = read(folder)
    assert skill.description == "It pairs with another: that first, then this."
    assert skill.license == "X"


def test_a_name_that_is_not_its_folders_is_noted(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "SKILL.md").write_text(HEAD, "utf-8")
    assert notes(read(other)) == [
        'SKILL.md:2: name: expected the name of its folder, "other", got "plain"'
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# No head\n", "SKILL.md:1: expected a table between two lines of ---"),
        ("---\nname: plain\n", "SKILL.md:1: expected a table between two lines of ---"),
        (
            HEAD.replace("plain", "../up"),
            'SKILL.md:2: name: expected a name of at most 64 lower-case letters, digits, - and _, got "../up"',
        ),
        (
            HEAD.replace("plain", "Plain Skill"),
            'SKILL.md:2: name: expected a name of at most 64 lower-case letters, digits, - and _, got "Plain Skill"',
        ),
        (
            HEAD.replace("description: What it is for.", "license: MIT"),
            "SKILL.md:1: description: expected what the skill is for, got null",
        ),
        (
            HEAD.replace("What it is for.", "x" * 1025),
            "SKILL.md:3: description: expected at most 1024 characters, got 1025",
        ),
        (
            HEAD.replace("name: plain", "name: plain\nname: twice"),
            "SKILL.md:3:1: expected each key once, got 'name' twice",
        ),
        ("---\n- a list\n---\n", "SKILL.md:1: expected a table with the keys name and description"),
        (
            "---\nname: !!python/object:os.system x\ndescription: y\n---\n",
            "SKILL.md:2:7: not valid YAML: could not determine a constructor for the tag 'tag:yaml.org,2002:python/object:os.system'",
        ),
    ],
)
def test_what_matters_is_refused_with_file_line_and_key(
    folder: Path, text: str, expected: str
) -> None:
    (folder / "SKILL.md").write_text(text, "utf-8")
    assert problems(folder) == [expected]


TOML = (
    '[skill]\nname = "plain"\ndescription = "It."\n[runtime]\ntype = "python"\nentry = "main.py"\n'
)


@pytest.mark.parametrize(
    ("was", "becomes", "expected"),
    [
        (
            '"python"',
            '"wasm"',
            'skill.toml:5: runtime.type: expected python, node, shell or promptonly (no other is run), got "wasm"',
        ),
        (
            '"python"',
            '"builtin"',
            'skill.toml:5: runtime.type: expected python, node, shell or promptonly (no other is run), got "builtin"',
        ),
        (
            '"main.py"',
            '"../main.py"',
            'skill.toml:6: runtime.entry: expected a file inside the skill\'s folder, got "../main.py"',
        ),
        (
            '"main.py"',
            '"/bin/sh"',
            'skill.toml:6: runtime.entry: expected a file inside the skill\'s folder, got "/bin/sh"',
        ),
        (
            '"main.py"',
            '"other.py"',
            'skill.toml:6: runtime.entry: expected a file of the skill\'s folder, got "other.py"',
        ),
        (
            'description = "It."',
            'descripton = "It."',
            "skill.toml:3: skill.descripton: unknown key; did you mean description?",
        ),
        (
            'entry = "main.py"',
            'entry = "main.py"\n[[tools.provided]]\nname = "read"',
            'skill.toml:8: tools.provided.read.name: expected a name other than read and run, which are ours, got "read"',
        ),
        (
            'entry = "main.py"',
            'entry = "main.py"\n[[tools.provided]]\nname = "a"\n[[tools.provided]]\nname = "a"',
            'skill.toml:10: tools.provided.a.name: expected each name once, got "a" twice',
        ),
        (
            'type = "python"',
            'type = "promptonly"\n[[tools.provided]]\nname = "a"\n#',
            "skill.toml:5: runtime.type: expected python, node or shell, which runs the tools, got promptonly",
        ),
    ],
)
def test_a_skill_of_the_seed_is_held_to_its_keys(
    folder: Path, was: str, becomes: str, expected: str
) -> None:
    (folder / "main.py").touch()
    text = TOML.replace(was, becomes)
    if "promptonly" in becomes:
        text = text.replace('entry = "main.py"\n', "")
    (folder / "skill.toml").write_text(text, "utf-8")
    assert expected in problems(folder)


def test_a_folder_without_either_file_is_no_skill(folder: Path) -> None:
    assert problems(folder) == ["plain: expected SKILL.md or skill.toml, got neither"]


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    for written in (text, f"---\n{text}\n---\nbody"):
        with contextlib.suppress(FrontMatterProblem):
            split(written)
