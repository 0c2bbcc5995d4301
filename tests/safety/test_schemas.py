"""Schemas of tools: what they accept, and that no schema can make us fetch, hang or leak."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.core.errors import InvalidArguments
from openfang.safety.schema_work import visits_by_depth
from openfang.safety.schemas import Validator, compile_schema

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.requirement("C7.5")

Schema = dict[str, Any]

PERSON: Schema = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name"],
    "additionalProperties": False,
}


def refusal(schema: Schema, arguments: dict[str, Any]) -> InvalidArguments:
    with pytest.raises(InvalidArguments) as caught:
        compile_schema(schema).check(arguments)
    return caught.value


def test_arguments_that_fit_pass() -> None:
    compile_schema(PERSON).check({"name": "Ada", "age": 36})
    compile_schema(MappingProxyType(PERSON)).check(MappingProxyType({"name": "Ada"}))


def test_an_empty_schema_accepts_any_object() -> None:
    compile_schema({}).check({"anything": [1, {"goes": None}]})


def test_a_refusal_names_the_place_and_what_was_expected() -> None:
    error = refusal({"properties": {"a": {"items": {"type": "integer"}}}}, {"a": [1, "x"]})
    assert error.rule == "schema_mismatch"
    assert '$.a[1]: the value is not of type "integer"' in error.message


def test_a_refusal_names_the_first_few_errors_and_counts_the_rest() -> None:
    schema = {"properties": {"a": {"items": {"type": "integer"}}}}
    message = refusal(schema, {"a": ["x"] * 10}).message
    assert message.count("is not of type") == 3
    assert message.endswith("and 7 more")


@pytest.mark.parametrize(
    "rule",
    [
        {"type": "integer"},
        {"enum": ["a", "b"]},
        {"const": 5},
        {"maxLength": 3},
        {"pattern": "^x+$"},
        {"anyOf": [{"type": "integer"}, {"maxLength": 1}]},
        {"oneOf": [{"type": "integer"}]},
        {"not": {"type": "string"}},
        {"allOf": [{"minLength": 100}]},
        {"if": {"type": "string"}, "then": False},
    ],
)
@pytest.mark.requirement("C13.4")
def test_a_refusal_never_shows_the_value(rule: Schema) -> None:
    secret = "hunter2-hunter2"
    error = refusal({"properties": {"password": rule}}, {"password": secret})
    assert secret not in f"{error.message} {error.way_out} {error!r}"
    many: dict[str, Any] = {"password": [secret], "pad": [0] * 2_000}
    error = refusal({"properties": {"password": {"items": rule}}}, many)
    assert secret not in f"{error.message} {error.way_out} {error!r}"


def test_a_long_message_is_cut() -> None:
    schema: Schema = {"properties": {"a": {"enum": [f"option {n}" for n in range(5_000)]}}}
    assert len(refusal(schema, {"a": "x"}).message) < 400


@pytest.fixture
def web() -> Iterator[tuple[str, list[str]]]:
    """A server on loopback that remembers who asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as inherited
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


def test_no_reference_is_ever_fetched(web: tuple[str, list[str]], tmp_path: Path) -> None:
    address, asked = web
    file = tmp_path / "schema.json"
    file.write_text('{"type": "integer"}')
    schemas: list[Schema] = [
        {"$ref": f"{address}/evil.json"},
        {"$ref": file.as_uri()},
        {"$schema": f"{address}/meta.json"},
        {"$id": f"{address}/root.json", "$ref": "other.json"},
        {"$dynamicRef": f"{address}/dynamic.json#x"},
        {"properties": {"a": {"$ref": f"{address}/inner.json#/x"}}},
    ]
    for schema in schemas:
        assert refusal(schema, {}).rule == "schema_broken"
    assert asked == []


def test_the_server_of_that_test_would_have_been_asked(web: tuple[str, list[str]]) -> None:
    address, asked = web
    jsonschema_rs.validator_for({"$ref": f"{address}/evil.json"})
    assert asked == ["/evil.json"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "no-such-type"},
        {"properties": []},
        {"pattern": "("},
        {"patternProperties": 5},
        {"$ref": "#/nowhere"},
        {"type": "object", "required": "name"},
        {"properties": {"a": {1, 2}}},
        {"enum": [2**70]},
    ],
)
def test_a_broken_schema_refuses_every_call_and_says_that_it_is_the_schema(schema: Schema) -> None:
    error = refusal(schema, {})
    assert error.rule == "schema_broken"
    assert "The tool's own input schema is broken" in error.message


def deep_schema(depth: int) -> Schema:
    schema = Schema()
    for _ in range(depth):
        schema = {"properties": {"a": schema}}
    return schema


def levels(count: int) -> Schema:
    schema = Schema()
    for _ in range(count - 1):
        schema = {"items": schema}
    return {**schema, "properties": {"a": {}}}


TOO_MUCH: list[Schema] = [
    {"description": "x" * 300_000},
    deep_schema(40),
    deep_schema(10_000),
    {"properties": {f"p{n}": {"pattern": f"^a{n}$"} for n in range(101)}},
    {"patternProperties": {f"^a{n}$": {} for n in range(101)}},
]


@pytest.mark.parametrize("schema", TOO_MUCH, ids=range(len(TOO_MUCH)))
def test_a_schema_that_is_too_much_is_broken(schema: Schema) -> None:
    assert refusal(schema, {}).rule == "schema_broken"


def test_as_much_as_is_taken_is_taken() -> None:
    patterns = {f"p{n}": {"pattern": f"^a{n}$"} for n in range(100)}
    compile_schema({"properties": patterns}).check({"p7": "a7"})
    compile_schema({"patternProperties": {f"^a{n}$": {} for n in range(100)}}).check({"a7": 1})
    compile_schema(levels(64)).check({})
    assert refusal(levels(65), {}).rule == "schema_broken"
    around = len(b'{"description":""}')
    compile_schema({"description": "x" * (256 * 1024 - around)}).check({})
    assert refusal({"description": "x" * (256 * 1024 - around + 1)}, {}).rule == "schema_broken"


def test_what_is_wrong_with_any_value_can_be_asked() -> None:
    validator = compile_schema({"items": {"type": "integer"}})
    assert validator.first_error([1, "x"]).startswith("$[1]: ")
    assert compile_schema({}).first_error("anything") == ""


def test_patterns_run_in_linear_time() -> None:
    validator = compile_schema({"properties": {"a": {"pattern": "^(a+)+$"}}})
    began = time.process_time()
    with pytest.raises(InvalidArguments):
        validator.check({"a": "a" * 100_000 + "!"})
    assert time.process_time() - began < 1


@pytest.mark.parametrize("pattern", [r"^(?!.*\.\.)[a-z.]+$", r"^(a|b)\1$"])
def test_a_pattern_that_needs_backtracking_is_left_to_the_tool(pattern: str) -> None:
    schema: Schema = {"properties": {"a": {"type": "string", "pattern": pattern}}}
    validator = compile_schema(schema)
    assert validator.unchecked == ("$.properties.a.pattern",)
    validator.check({"a": "anything"})
    with pytest.raises(InvalidArguments):
        validator.check({"a": 5})
    assert schema["properties"]["a"]["pattern"] == pattern


def test_a_property_called_pattern_is_only_a_property() -> None:
    validator = compile_schema({"properties": {"pattern": {"type": "string"}}})
    assert validator.unchecked == ()
    validator.check({"pattern": "("})


def test_formats_are_notes() -> None:
    for dialect in ("http://json-schema.org/draft-07/schema#", None):
        schema: Schema = {"properties": {"a": {"type": "string", "format": "email"}}}
        if dialect:
            schema["$schema"] = dialect
        compile_schema(schema).check({"a": "not an address"})


def doubling(levels: int) -> Schema:
    """Few bytes that visit one value 2 ** levels times."""
    defs: Schema = {"d0": {"type": "string"}}
    for n in range(1, levels + 1):
        defs[f"d{n}"] = {"allOf": [{"$ref": f"#/$defs/d{n - 1}"}, {"$ref": f"#/$defs/d{n - 1}"}]}
    return {"$defs": defs, "properties": {"x": {"$ref": f"#/$defs/d{levels}"}}}


def quickly(validator: Validator, arguments: dict[str, Any]) -> str:
    """Check within a second, and say how it ended."""
    began = time.process_time()
    try:
        validator.check(arguments)
    except InvalidArguments as error:
        return error.rule
    finally:
        assert time.process_time() - began < 1
    return "ok"


def test_references_that_double_are_bounded() -> None:
    assert quickly(compile_schema(doubling(5)), {"x": "y"}) == "ok"
    assert quickly(compile_schema(doubling(50)), {"x": "y"}) == "arguments_too_laborious"


@pytest.mark.parametrize(
    ("keyword", "draft"),
    [("$ref", "2020-12"), ("$dynamicRef", "2020-12"), ("$recursiveRef", "2019-09")],
)
def test_recursion_that_doubles_is_bounded_by_the_depth_of_the_arguments(
    keyword: str, draft: str
) -> None:
    twice: Schema = {
        "$schema": f"https://json-schema.org/draft/{draft}/schema",
        "properties": {"a": {"allOf": [{keyword: "#"}, {keyword: "#"}]}},
    }
    validator = compile_schema(twice)
    arguments: dict[str, Any] = {"a": {"a": {}}}
    assert quickly(validator, arguments) == "ok"
    for _ in range(50):
        arguments = {"a": arguments}
    assert quickly(validator, arguments) == "arguments_too_laborious"


def test_ordinary_recursion_is_taken_as_deep_as_arguments_may_be() -> None:
    tree: Schema = {
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "left": {"$ref": "#/$defs/node"},
                    "right": {"$ref": "#/$defs/node"},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                },
                "additionalProperties": False,
            }
        },
        "$ref": "#/$defs/node",
    }
    arguments: dict[str, Any] = {}
    for n in range(30):
        arguments = {"left": arguments} if n % 2 else {"children": [{}, arguments, {"right": {}}]}
    validator = compile_schema(tree)
    assert quickly(validator, arguments) == "ok"
    assert quickly(validator, {"left": {"right": {"up": 1}}}) == "schema_mismatch"


def test_a_circle_that_never_goes_deeper_is_broken() -> None:
    refs: Schema = {
        f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{m}"} for m in range(9) if m != n]}
        for n in range(9)
    }
    assert refusal({"$defs": refs, "$ref": "#/$defs/a0"}, {}).rule == "schema_broken"


def test_many_options_times_many_values_are_bounded() -> None:
    options = [{"x": n} for n in range(10_000)]
    validator = compile_schema({"properties": {"a": {"items": {"enum": options}}}})
    assert quickly(validator, {"a": [{"x": 9_999}] * 10}) == "ok"
    assert quickly(validator, {"a": [{"x": 9_999}] * 20_000}) == "arguments_too_laborious"


def test_a_hundred_thousand_errors_are_not_collected() -> None:
    validator = compile_schema({"properties": {"a": {"items": {"type": "string"}}}})
    assert quickly(validator, {"a": [1] * 200_000}) == "schema_mismatch"


def test_a_large_text_in_a_small_schema_is_no_work() -> None:
    validator = compile_schema(PERSON)
    assert quickly(validator, {"name": "x" * 1_000_000}) == "ok"


def test_a_schema_that_takes_a_schema_may_refer_to_the_meta_schema() -> None:
    meta = {"$ref": "https://json-schema.org/draft/2020-12/schema"}
    validator = compile_schema({"properties": {"schema": meta}})
    assert quickly(validator, {"schema": {"type": "object"}}) == "ok"
    assert quickly(validator, {"schema": {"type": "nope"}}) == "schema_mismatch"


@pytest.mark.parametrize(
    "schema",
    [
        {"$anchor": "top", "properties": {"a": {"$ref": "#top"}, "n": {"type": "integer"}}},
        {
            "$dynamicAnchor": "top",
            "properties": {"a": {"$dynamicRef": "#top"}, "n": {"type": "integer"}},
        },
        {"$id": "urn:x", "properties": {"a": {"$ref": "urn:x#"}, "n": {"type": "integer"}}},
        {
            "$id": "https://example.com/s",
            "$defs": {"a b/c": {"properties": {"n": {"type": "integer"}}}},
            "properties": {"a": {"$ref": "#/$defs/a%20b~1c"}},
        },
        {
            "allOf": [{"properties": {"n": {"type": "integer"}}}],
            "properties": {"a": {"$ref": "#/allOf/0"}},
        },
    ],
)
def test_references_by_anchor_id_and_pointer_are_followed(schema: Schema) -> None:
    validator = compile_schema(schema)
    assert quickly(validator, {"a": {"n": 1}}) == "ok"
    assert quickly(validator, {"a": {"n": "x"}}) == "schema_mismatch"


def test_visits_are_counted_along_the_worst_way_down() -> None:
    assert visits_by_depth({"properties": {"a": {}, "b": {"allOf": [{}, {}]}}}, 3) == [1, 4, 4]
    assert visits_by_depth({"items": {"$ref": "#"}}, 4) == [1, 3, 5, 7]
    assert visits_by_depth({"items": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}, 3)[2] > 8


LEAVES: list[Any] = [
    True,
    {},
    {"type": "string"},
    {"$ref": "#"},
    {"$ref": "#/$defs/d"},
    {"enum": [1, {}]},
]
SCHEMAS = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"properties": st.dictionaries(st.sampled_from("ab"), inner)}),
        st.fixed_dictionaries({"items": inner}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"not": inner}),
        st.fixed_dictionaries({"additionalProperties": inner}),
    ),
    max_leaves=8,
)
VALUES = st.recursive(
    st.sampled_from([1, "x", None]),
    lambda inner: st.dictionaries(st.sampled_from("ab"), inner) | st.lists(inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=100, deadline=None)
@given(root=SCHEMAS, other=SCHEMAS, value=VALUES)
def test_any_schema_either_answers_quickly_or_refuses(
    root: object, other: object, value: object
) -> None:
    validator = compile_schema({"$defs": {"d": other}, "properties": {"a": root}})
    known = {"ok", "schema_mismatch", "schema_broken", "arguments_too_laborious"}
    assert quickly(validator, {"a": value}) in known
    if validator.compiled is not None:
        schema: Any = json.loads(json.dumps({"$defs": {"d": other}, "properties": {"a": root}}))
        fits = jsonschema_rs.is_valid(schema, {"a": value})
        assert (quickly(validator, {"a": value}) == "ok") is fits


def test_the_library_is_loaded_with_the_first_schema() -> None:
    program = """if True:
        import sys, openfang.app.daemon.process
        from openfang.safety.schemas import compile_schema
        before = "jsonschema_rs" in sys.modules
        compile_schema({"type": "object"}).check({})
        print(before, "jsonschema_rs" in sys.modules)"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.split() == [b"False", b"True"]
