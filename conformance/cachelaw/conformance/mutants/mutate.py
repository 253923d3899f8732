"""The mutator: every way to change one thing in a piece of Python.

A mutation is first-order: one operator, one comparison, one constant, one condition, one list in
place of another, one statement dropped. They are found by walking the syntax tree in the order of
the source, so that the same source gives the same mutations in the same order. Annotations,
docstrings, imports and error messages are left alone: nothing a policy answers depends on them.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq, ast.Is),
    ast.NotEq: (ast.Eq, ast.IsNot),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
"""What a comparison may be mistaken for: its neighbour, its opposite, identity."""

OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Div: ast.FloorDiv,
    ast.BitOr: ast.BitAnd,
}

SWAPPED = {
    one: other
    for pair in (
        ("t1", "t2"),
        ("b1", "b2"),
        ("from_t1", "from_t2"),
        ("taken_t1", "taken_t2"),
        ("more_t1", "more_t2"),
        ("gone_t1", "gone_t2"),
        ("inserted", "reused"),
        ("insertion_only_keys", "reused_keys"),
        ("renew", "forget"),
        ("min", "max"),
    )
    for one, other in (pair, pair[::-1])
}
"""Names that stand for one of two things that are easily confused."""

KEYS = ("key", "other")
"""Names of keys, whose identity is no equality."""

UNTOUCHED = frozenset({"annotation", "returns", "decorator_list", "bases", "ctx", "type_params"})
"""Parts of the tree that no answer depends on."""


@dataclass(slots=True)
class Mutation:
    """One change.

    Attributes:
        where: the function or class it is in, methods as `Class-method`.
        line: the line within it, counted from 1.
        operator: what kind of change, in a few words joined by hyphens; numbered if the same
            occurs more than once in the line.
        before: the changed part as it stood.
        after: the same as it stands now, empty if it was dropped.
    """

    where: str
    line: int
    operator: str
    before: str
    after: str
    _tree: ast.Module
    _place: tuple[Any, Any]
    _new: Any

    @property
    def name(self) -> str:
        """`where/line/operator`, unique in its source."""
        return f"{self.where}/{self.line}/{self.operator}"

    def tree(self) -> ast.Module:
        """Return the syntax tree of the whole source with the change made."""
        old = _exchange(self._place, self._new)
        try:
            return ast.fix_missing_locations(copy.deepcopy(self._tree))
        finally:
            _exchange(self._place, old)


def _exchange(place: tuple[Any, Any], new: Any) -> Any:
    """Put `new` where `place` says and return what stood there."""
    owner, at = place
    if isinstance(owner, list):
        old, owner[at] = owner[at], new
    else:
        old = getattr(owner, at)
        setattr(owner, at, new)
    return old


def mutations(source: str) -> list[Mutation]:
    """Return every mutation of a module, in the order of the source.

    Two that come to the same text are one, and what changes no text is none.

    Args:
        source: the text of the module.
    """
    tree = ast.parse(source)
    found: list[Mutation] = []
    for where, definition in _definitions(tree):
        seen = {ast.unparse(definition)}
        names: Counter[tuple[int, str]] = Counter()
        for place, old, operator, new in _changes(definition):
            # What is a list of statements or arguments has no line of its own.
            line = _line(old, definition) - definition.lineno + 1
            undone = _exchange(place, new)
            text = ast.unparse(definition)
            _exchange(place, undone)
            if text in seen:
                continue
            seen.add(text)
            names[line, operator] += 1
            count = names[line, operator]
            label = operator if count == 1 else f"{operator}-{count}"
            found.append(Mutation(where, line, label, _text(old), _text(new), tree, place, new))
    return found


def _definitions(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    """Yield functions, methods, and what else classes define, with their names."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.FunctionDef):
                    yield f"{node.name}-{part.name}", part
                elif isinstance(part, ast.AnnAssign) and part.value is not None:
                    yield f"{node.name}-{ast.unparse(part.target)}", part
                elif isinstance(part, ast.Assign) and isinstance(part.value, ast.Constant):
                    yield f"{node.name}-{ast.unparse(part.targets[0])}", part


def _line(old: Any, definition: Any) -> int:
    line: int = getattr(old, "lineno", None) or definition.lineno
    return line


def _text(node: Any) -> str:
    if node is None or isinstance(node, ast.Pass):
        return ""
    if isinstance(node, ast.keyword):
        return f"{node.arg}={ast.unparse(node.value)}"
    return str(ast.unparse(node))


Change = tuple[tuple[Any, Any], Any, str, Any]
"""A place in the tree, what stands there, the operator, and what is put there."""


def _changes(node: Any) -> Iterator[Change]:
    """Yield every change under `node`, from the top down, in the order of the source."""
    for name, value in ast.iter_fields(node):
        if name in UNTOUCHED:
            continue
        if isinstance(value, list):
            for at, item in enumerate(value):
                if isinstance(item, ast.AST):
                    yield from _at((value, at), item, node, name)
        elif isinstance(value, ast.AST):
            yield from _at((node, name), value, node, name)


def _at(place: tuple[Any, Any], node: Any, parent: Any, field: str) -> Iterator[Change]:
    if _is_docstring(node) or isinstance(node, ast.Raise | ast.JoinedStr):
        return
    if isinstance(node, ast.stmt):
        for operator, new in _of_statement(node, parent, field):
            yield place, node, operator, new
    elif isinstance(node, ast.expr):
        for operator, new in _of_expression(node, parent, field):
            yield place, node, operator, new
    elif isinstance(node, ast.comprehension):
        for at, test in enumerate(node.ifs):
            yield (node.ifs, at), test, "condition-true", ast.Constant(True)
    elif isinstance(node, ast.keyword) and _is_update(parent):
        # A field that `replace` forgets keeps the value it had: `replace(state, field=state.field)`
        kept = ast.Attribute(copy.deepcopy(parent.args[0]), str(node.arg), ast.Load())
        yield (node, "value"), node.value, "forgotten-update", kept
        if node.arg in SWAPPED:
            other = ast.keyword(SWAPPED[node.arg], node.value)
            if all(keyword.arg != other.arg for keyword in parent.keywords):
                yield place, node, "wrong-list", ast.copy_location(other, node)
    yield from _changes(node)


def _is_docstring(node: Any) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _is_update(node: Any) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "replace"
    )


# --- Statements ----------------------------------------------------------------------------------


def _of_statement(node: Any, parent: Any, field: str) -> Iterator[tuple[str, Any]]:
    """Yield what may stand in place of a statement."""
    match node:
        case ast.Expr() | ast.Delete() | ast.AugAssign() | ast.Continue() | ast.For():
            yield "dropped", ast.Pass()
        case ast.Assign(targets=[ast.Name(id=name)]) if not _mentions(node.value, name):
            if not isinstance(parent, ast.FunctionDef):
                yield "dropped", ast.Pass()
        case ast.Assign() | ast.AnnAssign():
            yield "dropped", ast.Pass()
        case ast.Return() if not isinstance(parent, ast.FunctionDef):
            yield "dropped", ast.Pass()
        case ast.Return(value) if value is not None:
            yield "answer-dropped", ast.copy_location(ast.Return(None), node)
        case ast.If():
            yield "dropped", ast.Pass()
    if isinstance(node, ast.Continue):
        yield "continue-to-break", ast.Break()
    if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
        last = node.value.elts[-1]
        if isinstance(last, ast.Constant) and last.value is None:
            nothing = ast.Tuple([*node.value.elts[:-1], ast.Tuple([], ast.Load())], ast.Load())
            yield "none-to-empty", ast.copy_location(ast.Return(nothing), node)
        if isinstance(last, ast.Tuple) and not last.elts:
            none = ast.Tuple([*node.value.elts[:-1], ast.Constant(None)], ast.Load())
            yield "empty-to-none", ast.copy_location(ast.Return(none), node)


def _mentions(node: Any, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))


# --- Expressions ---------------------------------------------------------------------------------


def _of_expression(node: Any, parent: Any, field: str) -> Iterator[tuple[str, Any]]:
    """Yield what may stand in place of an expression."""
    if field == "test":
        yield "negated", ast.UnaryOp(ast.Not(), node)
        yield "always", ast.Constant(True)
        yield "never", ast.Constant(False)
    match node:
        case ast.Compare():
            yield from _of_comparison(node)
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield f"{_word(node.op)}-to-{_word(other)}", ast.BoolOp(other, node.values)
            for at in range(len(node.values)):
                kept = node.values[:at] + node.values[at + 1 :]
                rest = kept[0] if len(kept) == 1 else ast.BoolOp(node.op, kept)
                yield "operand-dropped", rest
        case ast.BinOp():
            if type(node.op) in OPERATORS:
                other_op = OPERATORS[type(node.op)]()
                name = f"{_word(node.op)}-to-{_word(other_op)}"
                yield name, ast.BinOp(node.left, other_op, node.right)
            yield "operand-dropped", node.right
            yield "operand-dropped", node.left
            if not _commutes(node):
                yield "operands-swapped", ast.BinOp(node.right, node.op, node.left)
        case ast.UnaryOp():
            yield f"{_word(node.op)}-dropped", node.operand
        case ast.IfExp():
            yield "always", node.body
            yield "never", node.orelse
        case ast.Constant():
            for value in _other_constants(node.value):
                yield "constant", ast.Constant(value)
        case ast.Tuple(elts=elements) if len(elements) > 1 and isinstance(node.ctx, ast.Load):
            if not isinstance(parent, ast.Return) or _has_star(node):
                yield "order", ast.Tuple(elements[::-1], ast.Load())
        case ast.Name(id=name) if name in SWAPPED and isinstance(node.ctx, ast.Load):
            yield "wrong-name", ast.Name(SWAPPED[name], ast.Load())
        case ast.Attribute(attr=name) if name in SWAPPED:
            yield "wrong-list", ast.Attribute(node.value, SWAPPED[name], node.ctx)
        case ast.Slice():
            for bound in ("lower", "upper"):
                value = getattr(node, bound)
                if value is not None and not isinstance(value, ast.Constant):
                    for name, moved in _off_by_one(value):
                        yield name, _with_bound(node, bound, moved)
        case ast.Call():
            yield from _of_call(node)


def _commutes(node: ast.BinOp) -> bool:
    """Say whether the operands may be swapped: those of a union, or of a sum of numbers."""
    number = any(isinstance(side, ast.Constant) for side in (node.left, node.right))
    return isinstance(node.op, ast.BitOr) or (isinstance(node.op, ast.Add) and number)


def _with_bound(node: ast.Slice, bound: str, moved: ast.expr) -> ast.Slice:
    lower, upper = (moved, node.upper) if bound == "lower" else (node.lower, moved)
    return ast.Slice(lower, upper, node.step)


def _of_comparison(node: ast.Compare) -> Iterator[tuple[str, Any]]:
    (op, *_), (right, *_) = node.ops, node.comparators
    of_keys = any(isinstance(side, ast.Name) and side.id in KEYS for side in (node.left, right))
    for other in COMPARISONS[type(op)]:
        if other in (ast.Is, ast.IsNot) and isinstance(op, ast.Eq | ast.NotEq) and not of_keys:
            continue  # which numbers are one object is the interpreter's affair
        name = f"{_word(op)}-to-{_word(other())}"
        yield name, ast.Compare(node.left, [other(), *node.ops[1:]], node.comparators)


def _of_call(node: ast.Call) -> Iterator[tuple[str, Any]]:
    called = node.func.id if isinstance(node.func, ast.Name) else ""
    if called == "reversed":
        yield "order", node.args[0]
        return
    if called == "sorted":
        flag = ast.keyword("reverse", ast.Constant(True))
        yield "order", ast.Call(node.func, node.args, [*node.keywords, flag])
    if called in ("len", "int"):
        yield from _off_by_one(node)
    if called == "range":
        for name, moved in _off_by_one(node.args[-1]):
            yield name, ast.Call(node.func, [*node.args[:-1], moved], [])
    # Only a function of a module, by its first argument: what a method does is dropped with its
    # statement, and other arguments are of other types.
    of_module = isinstance(node.func, ast.Attribute) and _is_module(node.func.value)
    if node.args and called != "len" and (called or of_module):
        argument = node.args[0]
        if not isinstance(argument, ast.Starred | ast.GeneratorExp):
            yield "call-dropped", argument


def _is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("lru", "arc")


def _off_by_one(node: Any) -> Iterator[tuple[str, Any]]:
    yield "one-more", ast.BinOp(node, ast.Add(), ast.Constant(1))
    yield "one-less", ast.BinOp(node, ast.Sub(), ast.Constant(1))


def _other_constants(value: Any) -> tuple[Any, ...]:
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int | float):
        return (value + 1, value - 1)
    return ()


def _has_star(node: ast.Tuple) -> bool:
    return any(isinstance(element, ast.Starred) for element in node.elts)


def _word(operator: ast.AST) -> str:
    """Return the name of an operator, as `lte` or `add`."""
    return type(operator).__name__.lower()
