"""Small faults, put one at a time into an exercise's solution: its check should notice each of them."""

import ast
import copy
from collections.abc import Iterator
from difflib import unified_diff

SWAPPED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
ONE_WAY = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult)
DROPPED = (ast.Expr, ast.Assign, ast.AugAssign, ast.Raise, ast.If, ast.For, ast.Break, ast.Continue)


def mutants(code: str) -> dict[str, str]:
    """Return each change, as "old line → new line", and the code with it."""
    tree, found = ast.parse(code), {}
    before = ast.unparse(tree)
    for node in ast.walk(tree):
        for field, value in ast.iter_fields(node):
            for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if not isinstance(child, ast.AST):
                    continue
                for new in _changes(child):
                    _put(node, field, index, new)
                    after = ast.unparse(tree)
                    found[_change(before, after)] = after
                _put(node, field, index, child)
    found.pop("", None)
    return found


def _put(node: ast.AST, field: str, index: int | None, child: ast.AST) -> None:
    if index is None:
        setattr(node, field, child)
    else:
        getattr(node, field)[index] = child


def _change(before: str, after: str) -> str:
    lines = list(unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""))[2:]
    old, new = (" ".join(line[1:].strip() for line in lines if line[0] == sign) for sign in "-+")
    return f"{old} → {new}" if lines else ""


def _with(node: ast.AST, **fields) -> ast.AST:
    changed = copy.copy(node)
    for field, value in fields.items():
        setattr(changed, field, value)
    return changed


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what a node is replaced with."""
    match node:
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield from (ast.Constant(value + 1), ast.Constant(value - 1))
        case ast.UnaryOp():
            yield node.operand
        case ast.BinOp():
            if type(node.op) in SWAPPED:
                yield _with(node, op=SWAPPED[type(node.op)]())
            if isinstance(node.op, ONE_WAY):
                yield _with(node, left=node.right, right=node.left)
        case ast.BoolOp():
            yield _with(node, op=SWAPPED[type(node.op)]())
            yield from node.values
        case ast.Compare(ops=[op]) if type(op) in SWAPPED:
            yield _with(node, ops=[SWAPPED[type(op)]()])
        case ast.IfExp():
            yield from (node.body, node.orelse)
        case ast.Attribute(attr="T" | "mT" | "H"):
            yield node.value
        case ast.Call():
            yield from _calls(node)
        case ast.Slice():
            for part in ("lower", "upper", "step"):
                if getattr(node, part) is not None:
                    yield _with(node, **{part: None})
        case ast.comprehension(ifs=[_, *_]):
            yield _with(node, ifs=[])
        case ast.Tuple(elts=[one, other]) if isinstance(node.ctx, ast.Load):
            yield _with(node, elts=[other, one])
    if isinstance(node, DROPPED) and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        yield ast.Pass()


def _calls(node: ast.Call) -> Iterator[ast.AST]:
    if isinstance(node.func, ast.Attribute):
        yield node.func.value
    if node.args and not isinstance(node.args[0], (ast.Starred, ast.GeneratorExp)):
        yield node.args[0]
    if len(node.args) > 1:
        yield _with(node, args=[node.args[1], node.args[0], *node.args[2:]])
        yield _with(node, args=node.args[:-1])
    for keyword in node.keywords:
        yield _with(node, keywords=[other for other in node.keywords if other is not keyword])
