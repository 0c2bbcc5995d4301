"""Every small change of a module that a test ought to notice: one changed node each, pure.

Left alone is what no test should repeat word for word: annotations, decorators, docstrings, and
the sentences of messages (a text with a space in it, or the words around a value).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, TypeVar, cast

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
# Their first argument is read by people and by the type checker only.
_NAMING = {"cast", "getLogger", "NewType", "TypeVar"}
# Conditions that have no change of their own are turned round.
_TURNED = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Await, ast.NamedExpr)
_WIDTH = 100
_Node = TypeVar("_Node", bound=ast.AST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One change: the how-manieth of its module, where it is, and what becomes of what."""

    number: int
    line: int
    statement: int
    """The line on which the statement around it begins."""
    inside: bool
    """Whether it is in the body of a function; the rest runs when the module is imported."""
    before: str
    after: str


def mutations(source: str) -> list[Mutation]:
    """Find every change that can be made to a module."""
    mutator = _Mutator(target=None)
    mutator.visit(ast.parse(source))
    return mutator.found


def mutated(source: str, number: int) -> ast.Module:
    """Make one of them; lines stay where they are."""
    tree = _Mutator(target=number).visit(ast.parse(source))
    return ast.fix_missing_locations(cast("ast.Module", tree))


class _Mutator(ast.NodeTransformer):
    """Numbers all changes in the order in which it meets them, and makes the wanted one."""

    def __init__(self, target: int | None) -> None:
        self.target = target
        self.found: list[Mutation] = []
        self.depth = 0
        self.statement = 0

    def visit(self, node: ast.AST) -> Any:  # noqa: ANN401 - as the library has it
        """Go on below a node, and remember the statement in which that is."""
        if isinstance(node, ast.stmt):
            self.statement = node.lineno
        return super().visit(node)

    def _offer(self, node: ast.AST, changed: list[ast.AST]) -> ast.AST:
        taken = node
        for new in changed:
            if len(self.found) == self.target:
                taken = ast.copy_location(new, node)
            self.found.append(self._mutation(node, new))
        return taken

    def _mutation(self, node: ast.AST, new: ast.AST) -> Mutation:
        return Mutation(
            number=len(self.found),
            line=getattr(node, "lineno", self.statement),
            statement=self.statement,
            inside=self.depth > 0,
            before=_short(node),
            after=_short(new),
        )

    def _all(self, nodes: list[_Node]) -> list[_Node]:
        return [self.visit(node) for node in nodes]

    def visit_Import(self, node: ast.Import) -> ast.AST:
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.body = self._all(node.body)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self.visit(node.args)
        self.depth += 1
        node.body = self._all(node.body)
        self.depth -= 1
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                part.value = self.visit(part.value)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        return self.generic_visit(node) if self.depth else node  # outside it is a type

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = ast.unparse(node.func).rpartition(".")[2]
        if name in _NAMING:
            node.args[1:] = self._all(node.args[1:])
        elif name == "field":
            node.keywords = [
                self.visit(one) if one.arg == "default" else one for one in node.keywords
            ]
        else:
            return self.generic_visit(node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        return self._offer(node, [_compared(node, at) for at in range(len(node.ops))])

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return self._offer(node, [ast.BoolOp(op=other, values=node.values)])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return self._offer(node, [node.operand] if isinstance(node.op, ast.Not) else [])

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        other = _OPERATORS.get(type(node.op))
        union_of_types = isinstance(node.op, ast.BitOr) and not self.depth
        if other is None or union_of_types:
            return node
        return self._offer(node, [ast.BinOp(left=node.left, op=other(), right=node.right)])

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        other = _OPERATORS[type(node.op)]()
        return self._offer(node, [ast.AugAssign(target=node.target, op=other, value=node.value)])

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return self._offer(node, [ast.Constant(value=value) for value in _others(node.value)])

    def visit_Return(self, node: ast.Return) -> ast.AST:
        self.generic_visit(node)
        plain = node.value is None or isinstance(node.value, ast.Constant)
        return self._offer(node, [] if plain else [ast.Return(value=ast.Constant(value=None))])

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if isinstance(node.value, ast.Constant):
            return node
        self.generic_visit(node)
        lasting = self.depth == 0 or isinstance(node.value, ast.Yield | ast.YieldFrom)
        return self._offer(node, [] if lasting else [ast.Pass()])

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        if any(isinstance(one, ast.Name) and one.id.startswith("__") for one in node.targets):
            return node
        self.generic_visit(node)
        stored = any(isinstance(one, ast.Attribute | ast.Subscript) for one in node.targets)
        return self._offer(node, [ast.Pass()] if stored and self.depth else [])

    def visit_Delete(self, node: ast.Delete) -> ast.AST:
        names = all(isinstance(one, ast.Name) for one in node.targets)
        return self._offer(node, [] if names else [ast.Pass()])

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        self.generic_visit(node)
        return self._offer(node, [ast.Pass()])

    def visit_Break(self, node: ast.Break) -> ast.AST:
        return self._offer(node, [ast.Continue()])

    def visit_Continue(self, node: ast.Continue) -> ast.AST:
        return self._offer(node, [ast.Break()])

    def visit_If(self, node: ast.If) -> ast.AST:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return node
        return self._conditional(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        return self._conditional(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return self._conditional(node)

    def _conditional(self, node: ast.If | ast.While | ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        node.test = self._turned(node.test)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.ifs = [self._turned(condition) for condition in node.ifs]
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        self.generic_visit(node)
        node.guard = self._turned(node.guard) if node.guard else None
        return node

    def _turned(self, test: ast.expr) -> ast.expr:
        turned = [ast.UnaryOp(op=ast.Not(), operand=test)] if isinstance(test, _TURNED) else []
        return cast("ast.expr", self._offer(test, [*turned]))


def _compared(node: ast.Compare, at: int) -> ast.Compare:
    ops = list(node.ops)
    ops[at] = _COMPARISONS[type(ops[at])]()
    return ast.Compare(left=node.left, ops=ops, comparators=node.comparators)


def _others(value: object) -> list[str | bytes | float]:
    """What a constant becomes: another truth, the next number, a longer word."""
    match value:
        case bool():
            return [not value]
        case int() | float():
            return [value + 1]
        case str():
            return [] if " " in value else [value + "X"]
        case bytes():
            return [value + b"X"]
        case _:
            return []


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(ast.fix_missing_locations(node)).split())
    return text if len(text) <= _WIDTH else text[:_WIDTH] + "..."
