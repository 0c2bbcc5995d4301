from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.safety.paths import FileRefused, components, has_parent_reference, is_closed


@pytest.mark.requirement("C6.2")
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".", ()),
        ("./", ()),
        ("a", ("a",)),
        ("a/b.txt", ("a", "b.txt")),
        ("./a//b/./c/", ("a", "b", "c")),
        ("...", ("...",)),
        ("a..b/..c", ("a..b", "..c")),
        ("a\\b", ("a\\b",)),
        ("/ws/a/b", ("a", "b")),
        ("/ws", ()),
        ("/ws/", ()),
    ],
)
def test_a_path_is_split_into_names_below_the_folder(path: str, expected: tuple[str, ...]) -> None:
    assert components(path, root="/ws") == expected


@pytest.mark.requirement("C6.2")
@pytest.mark.parametrize(
    "path",
    [
        "",
        "\0",
        "a\0b",
        "..",
        "../a",
        "a/../b",
        "a/..",
        "/ws/../etc/passwd",
        "/etc/passwd",
        "/wsx/a",
        "/",
        "//ws/a",
        "\ud800",
        "a" * 256,
        "\u00e9" * 128,
        "a/" * 2049,
    ],
)
def test_a_path_that_could_leave_the_folder_is_refused(path: str) -> None:
    with pytest.raises(FileRefused) as refused:
        components(path, root="/ws")
    assert refused.value.code == "file_refused"


@pytest.mark.requirement("C6.2")
def test_without_a_root_every_absolute_path_is_refused() -> None:
    with pytest.raises(FileRefused):
        components("/ws/a")


@pytest.mark.requirement("C6.2")
@settings(max_examples=200)
@given(st.text(alphabet="ab./\\\0\u00e9", max_size=30))
def test_no_accepted_path_can_climb(path: str) -> None:
    try:
        parts = components(path)
    except FileRefused:
        return
    assert not {"", ".", ".."} & set(parts)
    assert not any("/" in part or "\0" in part for part in parts)


@pytest.mark.requirement("C3.8")
@pytest.mark.parametrize(
    "element",
    [
        "..",
        "../server.py",
        "a/../b",
        "a/..",
        "..\\x",
        "--config=../x",
        "/a:../b",
        "file:///a/%2e%2e/b",
        "a%2F..%2fb",
        "a%5C%2E.%5cb",
        "x,../y",
        'say "../x"',
        "@../file",
    ],
)
def test_an_element_of_a_command_that_climbs_is_recognised(element: str) -> None:
    assert has_parent_reference(element)


@pytest.mark.requirement("C3.8")
@pytest.mark.parametrize(
    "element",
    ["", ".", "server.py", "./a", "...", "a..b", "HEAD..main", "1..10", "a/...b", "v1..", "..a"],
)
def test_dots_that_do_not_climb_pass(element: str) -> None:
    assert not has_parent_reference(element)


@pytest.mark.requirement("C6.1")
@pytest.mark.parametrize(
    ("pattern", "closed"),
    [
        (".env", ("a/.env", ".env", ".env/x")),
        ("*.key", ("a/b.key", "b.key")),
        ("a/secret", ("a/secret", "a/secret/x")),
        ("./a//secret/", ("a/secret", "a/secret/x")),
        ("a/*", ("a/x", "a/x/y")),
        ("/ws/a", ("a", "a/x")),
        ("/ws", ("a", "b/c")),
        ("/", ("a",)),
        ("//", ("a",)),
        (".", ("a",)),
        ("", ("a",)),
    ],
)
def test_what_is_closed_is_closed_with_all_below_it(pattern: str, closed: tuple[str, ...]) -> None:
    assert all(is_closed(tuple(path.split("/")), [pattern], root="/ws/") for path in closed)


@pytest.mark.requirement("C6.1")
@pytest.mark.parametrize(
    ("pattern", "open_path"),
    [
        (".env", "a/.envrc"),
        ("*.key", "key"),
        ("a/secret", "b/a/secret"),
        ("a/secret", "a/secrets"),
        ("a/secret", "a"),
        ("/ws/a", "b/a"),
        ("/wsa", "a"),
        ("/ws2/a", "a"),
        ("/elsewhere", "elsewhere"),
        ("/w", "a"),
    ],
)
def test_what_only_looks_like_it_stays_open(pattern: str, open_path: str) -> None:
    assert not is_closed(tuple(open_path.split("/")), [pattern], root="/ws/")


@pytest.mark.requirement("C6.1")
def test_any_of_several_patterns_closes_and_none_closes_nothing() -> None:
    assert is_closed(("a", "b"), ["x", "/elsewhere", "b"], root="/ws")
    assert not is_closed(("a", "b"), [], root="/ws")
