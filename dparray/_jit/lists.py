"""Lists of numbers in native code: arrays that grow, and the number of their items.

The function makes the list of a display, outside of ``prange`` loops. It uses it by ``append``,
``pop``, ``len``, an index, a loop, a condition, ``np.array`` and ``return``. Functions with other
lists are no native code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dparray._jit.inference import Inference, Value, is_number
from dparray._jit.kernel_texts import NUMPY, PYTHON_CLASSES, dtype_of
from dparray._jit.source import Source, at_line, copied, used_names
from dparray._language.array_functions import list_index

#: The name of :func:`dparray._language.array_functions.list_index` in generated code.
INDEX = "__list_index__"
NAMES = {INDEX: list_index}
_CAPACITY = 16


class Lists(NamedTuple):
    """A function whose lists are arrays.

    Attributes:
        tree: the function.
        types: its types.
        returns_list: whether it returns one of the lists.
    """

    tree: ast.FunctionDef
    types: Inference
    returns_list: bool


def with_arrays(source: Source, tree: ast.FunctionDef, types: Inference) -> Lists | None:
    """Return a function with arrays in place of its lists; ``None`` if it has none, or others."""
    displays: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.List):
            continue
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            displays.setdefault(node.targets[0].id, []).extend(node.value.elts)
    loops = [
        each for each in ast.walk(tree) if isinstance(each, ast.For) and source.is_prange(each)
    ]
    if not displays or any(used_names(each) & displays.keys() for each in loops):
        return None
    kinds = {
        name: _one_of([*map(types.of, items), *map(types.of, _appended(tree, name))])
        for name, items in displays.items()
    }
    if not all(map(is_number, kinds.values())):
        return None
    writer = _Writer(kinds)
    made = writer.visit(copied(tree))
    if writer.is_refused or writer.names_left(made):
        return None
    inferred = Inference(made, types.parameters, {**source.names, NUMPY: np, **NAMES})
    for name, items in writer.stored.items():
        if any(inferred.of(each) != kinds[name] for each in items):
            return None
    return Lists(made, inferred, writer.returns_list)


def _appended(tree: ast.AST, name: str) -> list[ast.expr]:
    return [
        node.args[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _method_of(node) == (name, "append") and node.args
    ]


def _method_of(node: ast.Call) -> tuple[str, str]:
    """Return the names of the owner and of the method that are called."""
    function = node.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return function.value.id, function.attr
    return "", ""


def _one_of(kinds: Iterable[Any]) -> Any:
    """Return the type of some values, of which items of lists are not known yet; ``None`` if there
    are several.
    """
    found = {kind for kind in kinds if isinstance(kind, Value)}
    return found.pop() if len(found) == 1 else None


class _Writer(ast.NodeTransformer):
    """Replaces lists by arrays and counts.

    Attributes:
        kinds: the types of the items, by the name of the list.
        stored: the items that are stored, in the new function.
        is_refused: whether a list is used in another way.
        returns_list: whether a list is returned.
    """

    def __init__(self, kinds: Mapping[str, Value]) -> None:
        self.kinds = kinds
        self.stored: dict[str, list[ast.expr]] = {name: [] for name in kinds}
        self.is_refused = self.returns_list = False
        self.depth = 0

    def names_left(self, tree: ast.AST) -> bool:
        """Return whether a list still has its name somewhere."""
        return any(isinstance(node, ast.Name) and node.id in self.kinds for node in ast.walk(tree))

    def _list(self, node: Any) -> str:
        """Return the name of a list, or an empty string."""
        return node.id if isinstance(node, ast.Name) and node.id in self.kinds else ""

    def _statements(self, texts: list[str], node: ast.AST, **given: ast.expr) -> list[ast.stmt]:
        """Return statements at the place of a node, with expressions in place of names."""
        made: list[ast.stmt] = at_line(ast.parse("\n".join(texts)), node.lineno).body  # type: ignore[attr-defined]
        return [_Given(given).visit(each) for each in made]

    def _class(self, name: str) -> str:
        """Return the class of the items of a list."""
        kind = self.kinds[name]
        is_python = kind.is_weak
        return PYTHON_CLASSES[kind.dtype.kind] if is_python else ast.unparse(dtype_of(kind.dtype))

    def _item(self, name: str, index: ast.expr, node: ast.expr) -> ast.expr:
        """Return an item of a list."""
        text = f"{self._class(name)}(__list_{name}[int({INDEX}(__count_{name}, __index))])"
        made: Any = ast.parse(text, mode="eval").body
        made = _Given({"__index": index}).visit(made)
        return ast.fix_missing_locations(ast.copy_location(made, node))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        """Enter the function, and refuse the lists of others in it."""
        self.depth += 1
        self.is_refused |= self.depth > 1 and self.names_left(node)
        made = self.generic_visit(node)
        self.depth -= 1
        return made

    def visit_Assign(self, node: ast.Assign) -> Any:
        """Make a list, or take its last item."""
        name = self._list(node.targets[0]) if len(node.targets) == 1 else ""
        if name and isinstance(node.value, ast.List):
            items = [self.visit(each) for each in node.value.elts]
            self.stored[name] += items
            size, dtype = max(_CAPACITY, len(items)), ast.unparse(dtype_of(self.kinds[name].dtype))
            texts = [f"__list_{name} = {NUMPY}.empty({size}, {dtype})"]
            texts += [f"__list_{name}[{at}] = __item{at}" for at in range(len(items))]
            texts.append(f"__count_{name} = {len(items)}")
            given = {f"__item{at}": item for at, item in enumerate(items)}
            return self._statements(texts, node, **given)
        if isinstance(node.value, ast.Call) and _method_of(node.value)[1] == "pop":
            popped = self._popped(node.value)
            if popped:
                node.value = self._last(_method_of(node.value)[0], node.value)
                return [*popped, node]
        return self.generic_visit(node)

    def _popped(self, node: ast.Call) -> list[ast.stmt]:
        """Return the statements that remove the last item; the array keeps its value."""
        name = _method_of(node)[0]
        if name not in self.kinds or node.args:
            return []
        test = f"if __count_{name} == 0: raise IndexError('pop from empty list')"
        return self._statements([test, f"__count_{name} -= 1"], node)

    def _last(self, name: str, node: ast.expr) -> ast.expr:
        """Return the item after the last one, which has been removed."""
        text = f"{self._class(name)}(__list_{name}[__count_{name}])"
        made: Any = ast.parse(text, mode="eval").body
        return ast.fix_missing_locations(ast.copy_location(made, node))

    def visit_Expr(self, node: ast.Expr) -> Any:
        """Add an item, or remove the last one."""
        call = node.value
        name, method = _method_of(call) if isinstance(call, ast.Call) else ("", "")
        if name not in self.kinds or not isinstance(call, ast.Call):
            return self.generic_visit(node)
        if method == "pop":
            return self._popped(call) or self.generic_visit(node)
        if method != "append" or len(call.args) != 1 or call.keywords:
            self.is_refused = True
            return node
        item = self.visit(call.args[0])
        self.stored[name].append(item)
        dtype = ast.unparse(dtype_of(self.kinds[name].dtype))
        texts = [
            f"if __count_{name} == __list_{name}.size:",
            f"    __longer_{name} = {NUMPY}.empty(2 * __count_{name}, {dtype})",
            f"    __longer_{name}[:__count_{name}] = __list_{name}",
            f"    __list_{name} = __longer_{name}",
            f"__list_{name}[__count_{name}] = __item",
            f"__count_{name} += 1",
        ]
        return self._statements(texts, node, __item=item)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        """Read an item; a store is refused."""
        name = self._list(node.value)
        if not name:
            return self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or isinstance(node.slice, ast.Slice | ast.Tuple):
            self.is_refused = True
            return node
        return self._item(name, self.visit(node.slice), node)

    def visit_For(self, node: ast.For) -> Any:
        """Iterate over a list, which may grow meanwhile."""
        name = self._list(node.iter)
        if not name or not isinstance(node.target, ast.Name):
            return self.generic_visit(node)
        at = f"__at_{name}_{node.lineno}"
        index: Any = ast.Name(at, ast.Load())
        loop: Any = self._statements([f"while {at} < __count_{name}: {at} += 1"], node)[0]
        item = ast.Assign([node.target], self._item(name, index, node.iter))
        item = ast.fix_missing_locations(ast.copy_location(item, node))
        body = [each for one in node.body for each in _several(self.visit(one))]
        loop.body = [item, *loop.body, *body]
        loop.orelse = [each for one in node.orelse for each in _several(self.visit(one))]
        return [*self._statements([f"{at} = 0"], node), loop]

    def visit_Call(self, node: ast.Call) -> Any:
        """Take the number of items, or make an array."""
        name = self._list(node.args[0]) if len(node.args) == 1 and not node.keywords else ""
        function = ast.unparse(node.func).rpartition(".")[2]
        if not name or function not in ("len", "array", "asarray"):
            return self.generic_visit(node)
        text = f"__count_{name}" if function == "len" else f"__list_{name}[:__count_{name}].copy()"
        made = ast.parse(text, mode="eval").body
        return ast.fix_missing_locations(ast.copy_location(made, node))

    def visit_While(self, node: Any) -> Any:
        """Ask whether a list has items, as ``while stack`` and ``if not stack`` do."""
        node.test = self._truth(node.test)
        return self.generic_visit(node)

    visit_If = visit_IfExp = visit_While

    def _truth(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            node.operand = self._truth(node.operand)
        name = self._list(node)
        made = ast.parse(f"__count_{name} > 0", mode="eval").body if name else node
        return ast.fix_missing_locations(ast.copy_location(made, node))

    def visit_Return(self, node: ast.Return) -> Any:
        """Return a list of Python numbers as an array, which becomes a list outside."""
        name = self._list(node.value)
        if not name or not self.kinds[name].is_weak:
            return self.generic_visit(node)
        self.returns_list = True
        made = ast.parse(f"return __list_{name}[:__count_{name}].copy()").body[0]
        for each in ast.walk(made):
            ast.copy_location(each, node)
        return made


def _several(made: Any) -> list[Any]:
    return made if isinstance(made, list) else [made]


class _Given(ast.NodeTransformer):
    """Replaces names by expressions."""

    def __init__(self, given: Mapping[str, ast.expr]) -> None:
        self.given = given

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Replace a name."""
        return self.given.get(node.id, node)
