"""Translation of generated kernels to LLVM IR, without Numba.

:mod:`dparray._codegen` generates a small subset of Python: numbers of array dtypes, assignments,
conditions, loops over ranges, and calls of the functions below. This module types and translates it
in one pass. Types follow Numba and NumPy, so that the same source gives the same numbers in both.
Source that calls user-defined functions is compiled by Numba, which supports all of Python.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from dparray import _type_keys
from dparray._compiler import abi
from dparray._compiler.abi import LOW_BITS
from dparray._compiler.generated.llvm_builder import (
    GLOBAL,
    LOCAL,
    POINTER,
    Array,
    Reference,
    Writer,
)
from dparray._compiler.generated.numbers import (
    BINARY,
    BOOL,
    DOUBLE,
    INT64,
    INTEGER_POWER,
    KINDS,
    SINGLE,
    UINT16,
    UINT64,
    UNARY,
    Kind,
    Value,
    common,
    in_memory,
    is_weak,
    written,
)
from dparray.kernel_api import MemoryOrder, MemoryScope


class TranslationError(Exception):
    """Raised for source that this module does not support; the message is the source."""


class _Slot(NamedTuple):
    """The memory of a variable that is assigned more than once."""

    pointer: str
    kind: Kind


class _Vector(NamedTuple):
    """Consecutive elements of an array, in registers; those not yet assigned are missing."""

    kind: Kind
    elements: dict[int, Value]


_ITEM, _GROUP, _SUB_GROUP = object(), object(), object()

_ARITHMETIC: dict[type, tuple[str, str]] = {
    ast.Add: ("add", "fadd"),
    ast.Sub: ("sub", "fsub"),
    ast.Mult: ("mul", "fmul"),
}
_BITWISE: dict[type, str] = {ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor"}
_COMPARISONS: dict[type, str] = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}
_OF_WRITTEN: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_MEMBERS: dict[tuple[str, str], Any] = {
    ("math", "inf"): math.inf,
    ("math", "nan"): math.nan,
    ("math", "pi"): math.pi,
    ("math", "e"): math.e,
    **{("MemoryScope", each.name): each for each in MemoryScope},
    **{("MemoryOrder", each.name): each for each in MemoryOrder},
}
_NUMBERS = {
    "get_id": abi.GLOBAL_ID,
    "get_range": "",
    "get_global_id": abi.GLOBAL_ID,
    "get_global_range": abi.GLOBAL_SIZE,
    "get_local_id": abi.LOCAL_ID,
    "get_local_range": abi.LOCAL_SIZE,
    "get_group_id": abi.GROUP_ID,
    "get_group_range": abi.GROUP_COUNT,
}
_SUB_GROUP_NUMBERS = {
    "get_local_id": abi.SUB_GROUP_LOCAL_ID,
    "get_local_range": abi.SUB_GROUP_SIZE,
    "get_group_id": abi.SUB_GROUP_ID,
}

# Instructions that cost more than a select, or must not be executed unconditionally: they stay
# behind a branch.
_NOT_CHOSEN = ("call", "load", "store", "udiv", "sdiv", "urem", "srem", "br ", "fdiv", ":")
_MAX_CHOSEN = 4


def translated(source: str, types: Sequence[str]) -> tuple[str, str]:
    """Return the entry point of a generated kernel, and its module as unoptimized LLVM IR.

    Args:
        source: the source, of one function.
        types: the type keys of its parameters, the item first.

    Raises:
        TranslationError: the source has something that generated kernels do not contain.
    """
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    return abi.entry_name(function.name), _Function(function, types).module()


class _Function(Writer):
    """Translates one function.

    Attributes:
        names: the values of the names in the source.
        allocated: the allocations of variables, emitted at the beginning.
        several: the names that are assigned more than once.
    """

    def __init__(self, function: ast.FunctionDef, types: Sequence[str]) -> None:
        self.function = function
        super().__init__()
        self.allocated: list[str] = []
        self.names: dict[str, Any] = {}
        self.several = _assigned_again(function)
        self.parameters: list[str] = []
        self.extents: list[Value] = []
        for argument, key in zip(function.args.args, types, strict=True):
            self._parameter(argument.arg, _type_keys.parse(key))

    def module(self) -> str:
        """Return the LLVM IR of the module."""
        self._body(self.function.body)
        name = abi.entry_name(self.function.name)
        head = f"define spir_kernel void @{name}({', '.join(self.parameters)}) {{\nentry:\n"
        body = "\n".join([*self.allocated, *self.lines])
        definition = f"{head}{body}\n  br label %exit\nexit:\n  ret void\n}}\n"
        return "\n".join([*self.declared, definition])

    # -- emission ---------------------------------------------------------------------------------

    # -- parameters and variables -----------------------------------------------------------------

    def _parameter(self, name: str, key: _type_keys.TypeKey) -> None:
        if key.is_item:
            self.names[name] = _ITEM
            if key.kind == "item":
                self._leave_out(key.ndim)
            return
        kind = KINDS[key.numpy_dtype.name]
        own = f"%{name}"
        if key.kind == "scalar":
            self.parameters.append(f"{kind.llvm} {own}")
            self._assign(name, Value(own, kind))
            return
        space = LOCAL if key.kind.startswith("local") else GLOBAL
        pointer = f"{POINTER.format(space)} {own}"
        if key.as_pointer is key:
            self.parameters.append(pointer)
        elif key.ndim == 1 and key.order in ("C", ""):
            # The number of elements, their size, the pointer, the extent and the stride.
            before, after = ([f"i64 {own}.{index}" for index in part] for part in ((0, 1), (2, 3)))
            self.parameters += [*before, pointer, *after]
        else:
            raise TranslationError(f"an array {key}")
        self.names[name] = Array(own, kind, space)

    def _leave_out(self, dimensions: int) -> None:
        """End the work-items beyond the requested range, whose size is passed for the item."""
        for dimension in range(dimensions):
            extent = f"%extent{dimension}"
            self.parameters.append(f"i64 {extent}")
            self.extents.append(Value(extent, INT64))
            is_beyond = self.emit(
                f"icmp sge i64 {self._number_of(abi.GLOBAL_ID, dimension)}, {extent}"
            )
            inside = self.label("inside")
            self.do(f"br i1 {is_beyond}, label %exit, label %{inside}")
            self.begin(inside)

    def _number_of(self, name: str, dimension: int) -> str:
        """Return an id of the work-item in a dimension."""
        given = [("i32", str(dimension))]
        return self.emit(self.call(abi.mangled(name, "j"), "i64", given, "memory(none)"))

    def _assign(self, name: str, value: Any) -> None:
        if name not in self.several or not isinstance(value, Value):
            self.names[name] = value
            return
        slot = self.names.get(name)
        if slot is None:
            slot = _Slot(f"%{self.label(name + '.')}", value.kind)
            self.allocated.append(f"  {slot.pointer} = alloca {value.kind.llvm}")
            self.names[name] = slot
        if slot.kind != value.kind:
            raise TranslationError(f"{name} is first {slot.kind.llvm}, then {value.kind.llvm}")
        self.do(f"store {value.kind.llvm} {value.text}, ptr {slot.pointer}")

    # -- statements -------------------------------------------------------------------------------

    def _body(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            getattr(self, f"_{type(statement).__name__.lower()}_statement", self._unknown)(
                statement
            )

    def _unknown(self, statement: ast.AST) -> Any:
        raise TranslationError(ast.unparse(statement))

    def _assign_statement(self, statement: ast.Assign) -> None:
        (target,) = statement.targets
        if isinstance(target, ast.Name):
            self._assign(target.id, self._any(statement.value))
        elif isinstance(target, ast.Subscript) and (vector := self._vector(target.value)):
            place = self._whole(target.slice)
            vector.elements[place] = self.to(self._expression(statement.value), vector.kind)
        elif isinstance(target, ast.Subscript):
            array, pointer = self._element(target)
            value = self.to(self._expression(statement.value), array.kind)
            self.store(value, pointer, array)
        else:
            self._unknown(statement)

    def _augassign_statement(self, statement: ast.AugAssign) -> None:
        assert isinstance(statement.target, ast.Name)
        read = ast.Name(statement.target.id, ast.Load())
        value = self._expression(ast.BinOp(read, statement.op, statement.value))
        self._assign(statement.target.id, value)

    def _expr_statement(self, statement: ast.Expr) -> None:
        self._any(statement.value)

    def _return_statement(self, statement: ast.Return) -> None:
        self.do("br label %exit")
        self.begin(self.label("dead"))

    def _if_statement(self, statement: ast.If) -> None:
        condition = self.truth(self._expression(statement.test))
        then, other, end = (self.label(each) for each in ("then", "else", "end"))
        self.do(f"br i1 {condition.text}, label %{then}, label %{other}")
        for label, body in ((then, statement.body), (other, statement.orelse)):
            self.begin(label)
            self._body(body)
            self.do(f"br label %{end}")
        self.begin(end)

    def _while_statement(self, statement: ast.While) -> None:
        with self._loop(lambda: self.truth(self._expression(statement.test))):
            self._body(statement.body)

    def _for_statement(self, statement: ast.For) -> None:
        call, target = statement.iter, statement.target
        is_range = isinstance(call, ast.Call) and ast.unparse(call.func) == "range"
        if not is_range or not isinstance(target, ast.Name) or target.id in self.several:
            self._unknown(statement)
        assert isinstance(call, ast.Call)
        assert isinstance(target, ast.Name)
        ends = [self._expression(argument) for argument in call.args]
        first, stop = (written(0), ends[0]) if len(ends) == 1 else ends[:2]
        step = ends[2].written if len(ends) == 3 else 1
        if not isinstance(step, int) or step < 1:
            self._unknown(statement)
        kind = common(first, stop)
        first, stop = self.to(first, kind), self.to(stop, kind)
        slot = f"%{self.label(target.id + '.')}"
        self.allocated.append(f"  {slot} = alloca {kind.llvm}")
        self.do(f"store {kind.llvm} {first.text}, ptr {slot}")
        order = "slt" if kind == INT64 else "ult"

        def goes_on() -> Value:
            at = self.value(f"load {kind.llvm}, ptr {slot}", kind, counts=True)
            self.names[target.id] = at
            return self.value(f"icmp {order} i64 {at.text}, {stop.text}", BOOL)

        with self._loop(goes_on):
            self._body(statement.body)
            flag = "nsw" if kind == INT64 else "nuw"
            after = self.emit(f"add {flag} i64 {self.names[target.id].text}, {step}")
            self.do(f"store i64 {after}, ptr {slot}")

    @contextmanager
    def _loop(self, goes_on: Callable[[], Value]) -> Iterator[None]:
        """Emit a loop; its body is emitted inside the block."""
        test, body, end = (self.label(each) for each in ("test", "body", "end"))
        self.do(f"br label %{test}")
        self.begin(test)
        self.do(f"br i1 {goes_on().text}, label %{body}, label %{end}")
        self.begin(body)
        yield
        self.do(f"br label %{test}")
        self.begin(end)

    # -- memory -----------------------------------------------------------------------------------

    def _element(self, subscript: ast.Subscript) -> tuple[Array, str]:
        """Return the array of an element, and its address."""
        array = self._any(subscript.value)
        if not isinstance(array, Array):
            self._unknown(subscript)
        index = self._expression(subscript.slice)
        if index.kind.kind == "i" and not is_weak(index):
            # Negative indices count from the end, which generated code never does.
            raise TranslationError(f"the index {ast.unparse(subscript.slice)} is signed")
        index = self.to(index, UINT64)
        return array, self.address(array, index.text)

    def _vector(self, node: ast.expr) -> _Vector | None:
        """Return the vector that an expression names, if any."""
        known = self.names.get(node.id) if isinstance(node, ast.Name) else None
        return known if isinstance(known, _Vector) else None

    def _whole(self, node: ast.expr) -> int:
        """Return the value of an integer literal."""
        number = self._expression(node).written
        assert isinstance(number, int)
        return number

    def _call_of_is_aligned(self, node: ast.Call) -> Value:
        array, count = self._any(node.args[0]), self._whole(node.args[1])
        pointer = f"{POINTER.format(array.space)} {array.pointer}"
        address = self.emit(f"ptrtoint {pointer} to i64")
        rest = self.emit(f"and i64 {address}, {count * _bytes_of(array.kind) - 1}")
        return self.value(f"icmp eq i64 {rest}, 0", BOOL)

    def _call_of_new_vector(self, node: ast.Call) -> _Vector:
        return _Vector(self._any(node.args[0]).kind, {})

    def _call_of_load_vector(self, node: ast.Call) -> _Vector:
        count = self._whole(node.args[2])
        kind, pointer, alignment = self._vector_memory(node, count)
        loaded = self.emit(f"load {kind}, {pointer}, {alignment}")
        array = self._any(node.args[0])
        vector = _Vector(array.kind, {})
        for place in range(count):
            text = self.emit(f"extractelement {kind} {loaded}, i32 {place}")
            if array.kind == BOOL:
                text = self.emit(f"icmp ne i8 {text}, 0")
            vector.elements[place] = Value(text, array.kind)
        return vector

    def _call_of_store_vector(self, node: ast.Call) -> None:
        elements = self._any(node.args[2]).elements
        kind, pointer, alignment = self._vector_memory(node, len(elements))
        stored = "poison"
        for place, value in elements.items():
            text = value.text if value.kind != BOOL else self.emit(f"zext i1 {value.text} to i8")
            element = f"{in_memory(value.kind)} {text}"
            stored = self.emit(f"insertelement {kind} {stored}, {element}, i32 {place}")
        self.do(f"store {kind} {stored}, {pointer}, {alignment}")

    def _vector_memory(self, node: ast.Call, count: int) -> tuple[str, str, str]:
        """Return the type, the pointer and the alignment of a vector in an array."""
        array, index = self._any(node.args[0]), self.to(self._expression(node.args[1]), UINT64)
        pointer = f"{POINTER.format(array.space)} {self.address(array, index.text)}"
        size = count * _bytes_of(array.kind)
        return f"<{count} x {in_memory(array.kind)}>", pointer, f"align {size}"

    # -- expressions ------------------------------------------------------------------------------

    def _expression(self, node: ast.expr) -> Value:
        """Return the number that an expression evaluates to."""
        value = self._any(node)
        if not isinstance(value, Value):
            self._unknown(node)
        assert isinstance(value, Value)
        return value

    def _any(self, node: ast.expr) -> Any:
        """Return the value of an expression: a number, an array, a group."""
        translate = getattr(self, f"_{type(node).__name__.lower()}_expression", self._unknown)
        return translate(node)

    def _name_expression(self, node: ast.Name) -> Any:
        known = self.names.get(node.id)
        if known is None:
            raise TranslationError(f"the name {node.id}")
        if isinstance(known, _Slot):
            return self.value(f"load {known.kind.llvm}, ptr {known.pointer}", known.kind)
        return known

    def _constant_expression(self, node: ast.Constant) -> Value:
        assert isinstance(node.value, bool | int | float)
        return written(node.value)

    def _attribute_expression(self, node: ast.Attribute) -> Any:
        owner = node.value
        key = (owner.id, node.attr) if isinstance(owner, ast.Name) else None
        if key not in _MEMBERS:
            return self._unknown(node)
        member = _MEMBERS[key]
        return written(member) if type(member) is float else member

    def _subscript_expression(self, node: ast.Subscript) -> Value:
        if vector := self._vector(node.value):
            return vector.elements[self._whole(node.slice)]
        array, pointer = self._element(node)
        kind = array.kind
        text = self.emit(f"load {in_memory(kind)}, {POINTER.format(array.space)} {pointer}")
        return self.value(f"icmp ne i8 {text}, 0", kind) if kind == BOOL else Value(text, kind)

    def _unaryop_expression(self, node: ast.UnaryOp) -> Value:
        value = self._expression(node.operand)
        operation = type(node.op)
        if operation is ast.Not:
            return self.value(f"xor i1 {self.truth(value).text}, true", BOOL)
        if operation is ast.UAdd:
            return value
        if operation is ast.USub and value.written is not None:
            return written(-value.written)
        if value.kind.kind == "f":
            if operation is not ast.USub:
                self._unknown(node)
            return self.value(f"fneg {value.kind.llvm} {value.text}", value.kind)
        own = self.to(value, value.kind if value.kind.is_integer else INT64)
        if operation is ast.USub:
            return self.value(f"sub {own.kind.llvm} 0, {own.text}", own.kind)
        return self.value(f"xor {own.kind.llvm} {own.text}, -1", own.kind)

    def _binop_expression(self, node: ast.BinOp) -> Value:
        first, second = self._expression(node.left), self._expression(node.right)
        operation = type(node.op)
        if first.written is not None and second.written is not None and operation in _OF_WRITTEN:
            return written(_OF_WRITTEN[operation](first.written, second.written))
        if operation in _BITWISE:
            kind = BOOL if first.kind == second.kind == BOOL else common(first, second)
            if kind.kind == "f":
                self._unknown(node)
            a, b = self.to(first, kind), self.to(second, kind)
            return self.value(f"{_BITWISE[operation]} {kind.llvm} {a.text}, {b.text}", kind)
        if operation in (ast.LShift, ast.RShift):
            return self.shift(operation, first, second)
        if operation is ast.Div:
            kind = common(first, second)
            kind = kind if kind.kind == "f" else DOUBLE
            a, b = self.to(first, kind), self.to(second, kind)
            return self.value(f"fdiv {kind.llvm} {a.text}, {b.text}", kind)
        kind = common(first, second)
        a, b = self.to(first, kind), self.to(second, kind)
        if operation in _ARITHMETIC:
            name = _ARITHMETIC[operation][kind.kind == "f"]
            counts = kind == INT64 and all(
                each.counts or each.written is not None for each in (first, second)
            )
            flag = " nsw" if counts else ""
            return self.value(f"{name}{flag} {kind.llvm} {a.text}, {b.text}", kind, counts)
        if operation not in (ast.FloorDiv, ast.Mod) or kind.kind == "f":
            self._unknown(node)
        if kind == INT64 and UINT64 in (first.kind, second.kind):
            raise TranslationError(f"{ast.unparse(node)} mixes signed and unsigned integers")
        index = int(operation is ast.Mod)
        return (self.unsigned_quotient if kind == UINT64 else self.floored)(a, b, index)

    def _compare_expression(self, node: ast.Compare) -> Value:
        if len(node.ops) != 1:
            self._unknown(node)
        first, second = self._expression(node.left), self._expression(node.comparators[0])
        order = _COMPARISONS[type(node.ops[0])]
        kinds = first.kind.kind + second.kind.kind
        if kinds == "bb":
            a, b = (self.to(each, INT64) for each in (first, second))
            return self.compared(order, a, b, INT64)
        kind = common(first, second)
        if kind.kind != "f" and kinds in ("iu", "ui") and kind == INT64:
            unsigned = first if kinds == "ui" else second
            if unsigned.kind.bits == 64:
                return self.compared_mixed(order, first, second)
        a, b = self.to(first, kind), self.to(second, kind)
        return self.compared(order, a, b, kind)

    def _boolop_expression(self, node: ast.BoolOp) -> Value:
        is_and = isinstance(node.op, ast.And)
        value = self.truth(self._expression(node.values[0]))
        for operand in node.values[1:]:
            constant = Value("false" if is_and else "true", BOOL)

            def right(operand: ast.expr = operand) -> Value:
                return self.truth(self._expression(operand))

            def left(constant: Value = constant) -> Value:
                return constant

            value = self._chosen(value, right, left) if is_and else self._chosen(value, left, right)
        return value

    def _ifexp_expression(self, node: ast.IfExp) -> Value:
        condition = self.truth(self._expression(node.test))
        return self._chosen(
            condition,
            lambda: self._expression(node.body),
            lambda: self._expression(node.orelse),
        )

    def _chosen(
        self, condition: Value, then: Callable[[], Value], other: Callable[[], Value]
    ) -> Value:
        """Return one of two values, each computed only if it is selected, unless that is cheap."""
        before, start = self.lines, self.block
        parts = []
        for label, make in ((self.label("then"), then), (self.label("else"), other)):
            self.lines = []
            self.block = label
            value = make()
            parts.append((label, self.block, value, self.lines))
        kind = self._unified(parts[0][2], parts[1][2])
        values = []
        for _, _, value, lines in parts:
            self.lines = lines
            values.append(self.to(value, kind).text)
        self.lines, self.block = before, start
        texts = [line for *_, lines in parts for line in lines]
        if len(texts) <= _MAX_CHOSEN and not any(
            word in line for line in texts for word in _NOT_CHOSEN
        ):
            self.lines += texts
            chosen = f"select i1 {condition.text}, {kind.llvm} {values[0]}, {kind.llvm} {values[1]}"
            return self.value(chosen, kind)
        end = self.label("end")
        self.do(f"br i1 {condition.text}, label %{parts[0][0]}, label %{parts[1][0]}")
        for label, _, _, lines in parts:
            self.begin(label)
            self.lines += lines
            self.do(f"br label %{end}")
        self.begin(end)
        pairs = ", ".join(
            f"[ {value}, %{last} ]" for value, (_, last, _, _) in zip(values, parts, strict=True)
        )
        return self.value(f"phi {kind.llvm} {pairs}", kind)

    def _unified(self, first: Value, second: Value) -> Kind:
        """Return the common type of two alternatives.

        Raises:
            TranslationError: no integer type holds both.
        """
        if first.kind == second.kind:
            return first.kind
        kind = common(first, second)
        if kind == INT64 and UINT64 in (first.kind, second.kind):
            raise TranslationError("a choice of signed and unsigned integers")
        return kind

    # -- calls ------------------------------------------------------------------------------------

    def _call_expression(self, node: ast.Call) -> Any:
        called = node.func
        if isinstance(called, ast.Attribute):
            if isinstance(called.value, ast.Name) and called.value.id == "math":
                return self._call_of_math(called.attr, node)
            return self._method(called, node)
        assert isinstance(called, ast.Name)
        if called.id in KINDS:
            return self.to(self._expression(*node.args), KINDS[called.id])
        translate = getattr(self, f"_call_of_{called.id}", None)
        return self._unknown(node) if translate is None else translate(node)

    def _call_of_math(self, name: str, node: ast.Call) -> Value:
        values = [self._expression(argument) for argument in node.args]
        if name not in (UNARY if len(values) == 1 else BINARY):
            self._unknown(node)
        kind = values[0].kind
        if len(values) == 2:
            kind = common(*values)
        if kind.kind != "f":
            kind = DOUBLE
        return self.mathematics(name, kind, [self.to(each, kind).text for each in values])

    def _call_of_abs(self, node: ast.Call) -> Value:
        value = self._expression(*node.args)
        if value.written is not None:
            return written(abs(value.written))
        if value.kind.kind == "f":
            return self.mathematics("fabs", value.kind, [value.text])
        if value.kind.kind != "i":
            self._unknown(node)
        kind = value.kind.llvm
        negative = self.emit(f"sub {kind} 0, {value.text}")
        is_negative = self.emit(f"icmp slt {kind} {value.text}, 0")
        chosen = f"select i1 {is_negative}, {kind} {negative}, {kind} {value.text}"
        return self.value(chosen, value.kind)

    def _call_of_min(self, node: ast.Call) -> Value:
        return self._extreme(node, "slt", "ult")

    def _call_of_max(self, node: ast.Call) -> Value:
        return self._extreme(node, "sgt", "ugt")

    def _extreme(self, node: ast.Call, signed: str, unsigned: str) -> Value:
        """Return the minimum or the maximum of two integers of one kind."""
        first, second = (self._expression(argument) for argument in node.args)
        kind = self._unified(first, second)
        if not kind.is_integer:
            self._unknown(node)
        a, b = self.to(first, kind).text, self.to(second, kind).text
        is_first = self.emit(
            f"icmp {signed if kind.kind == 'i' else unsigned} {kind.llvm} {a}, {b}"
        )
        return self.value(f"select i1 {is_first}, {kind.llvm} {a}, {kind.llvm} {b}", kind)

    def _call_of_half_value(self, node: ast.Call) -> Value:
        return self.extended(self.to(self._expression(*node.args), UINT16).text)

    def _call_of_half_bits(self, node: ast.Call) -> Value:
        return self.value(f"bitcast half {self._half(node)} to i16", UINT16)

    def _call_of_half(self, node: ast.Call) -> Value:
        return self.value(f"fpext half {self._half(node)} to float", SINGLE)

    def _half(self, node: ast.Call) -> str:
        """Return the float16 nearest to a number."""
        value = self._expression(*node.args)
        if value.kind.kind != "f":
            value = self.to(value, SINGLE)
        return self.emit(f"fptrunc {value.kind.llvm} {value.text} to half")

    def _call_of_bfloat16_value(self, node: ast.Call) -> Value:
        return self._widened(self.to(self._expression(*node.args), UINT16).text)

    def _call_of_bfloat16_bits(self, node: ast.Call) -> Value:
        return self.value(f"trunc i32 {self._upper_half(node)} to i16", UINT16)

    def _call_of_bfloat16(self, node: ast.Call) -> Value:
        return self._widened(self.emit(f"trunc i32 {self._upper_half(node)} to i16"))

    def _widened(self, bits: str) -> Value:
        """Return the float32 whose upper half is a bfloat16, given as its bits."""
        wide = self.emit(f"zext i16 {bits} to i32")
        return self.value(f"bitcast i32 {self.emit(f'shl i32 {wide}, 16')} to float", SINGLE)

    def _upper_half(self, node: ast.Call) -> str:
        """Return the bits of the bfloat16 nearest to a number; NaN is truncated and made quiet."""
        value = self.to(self._expression(*node.args), SINGLE).text
        bits = self.emit(f"bitcast float {value} to i32")
        upper = self.emit(f"lshr i32 {bits}, 16")
        is_odd = self.emit(f"and i32 {upper}, 1")
        half = self.emit(f"add i32 {is_odd}, 32767")
        rounded = self.emit(f"lshr i32 {self.emit(f'add i32 {bits}, {half}')}, 16")
        is_nan = self.emit(f"fcmp uno float {value}, {value}")
        quiet = self.emit(f"or i32 {upper}, 64")
        return self.emit(f"select i1 {is_nan}, i32 {quiet}, i32 {rounded}")

    def _call_of_integer_power(self, node: ast.Call) -> Value:
        base, exponent = (self._expression(argument) for argument in node.args)
        wide = [
            self.to(each, UINT64 if each.kind.kind == "u" else INT64).text
            for each in (base, exponent)
        ]
        is_negative = "false"
        if exponent.kind.kind == "i":
            is_negative = self.emit(f"icmp slt i64 {wide[1]}, 0")
        self.declared[INTEGER_POWER] = None
        given = f"i64 {wide[0]}, i64 {wide[1]}, i1 {is_negative}"
        return self.value(f"call i64 @integer_power({given})", UINT64)

    def _call_of_multiply_add_32(self, node: ast.Call) -> Value:
        first, second, added = (self._low_bits(argument) for argument in node.args)
        product = self.emit(f"mul i32 {first}, {second}")
        total = self.emit(f"add i32 {product}, {added}")
        return self.value(f"sext i32 {total} to i64", UINT64)

    def _low_bits(self, node: ast.expr) -> str:
        """Return the low 32 bits of an integer, by a function that LLVM does not look into."""
        given = [("i64", self.to(self._expression(node), UINT64).text)]
        return self.emit(self.call(LOW_BITS, "i32", given, "speculatable memory(none)"))

    def _call_of_group_barrier(self, node: ast.Call) -> None:
        group, scope = (self._any(argument) for argument in node.args)
        assert group is _GROUP
        given = [abi.scope(MemoryScope.WORK_GROUP), abi.scope(scope)]
        given.append(abi.semantics(MemoryOrder.SEQ_CST))
        name = abi.mangled("__spirv_ControlBarrier", "jjj")
        arguments = [("i32", str(each)) for each in given]
        self.do(self.call(name, "void", arguments, "convergent"))

    def _call_of_select_from_group(self, node: ast.Call) -> Value:
        group, value, lane = (self._any(argument) for argument in node.args)
        assert group is _SUB_GROUP
        if value.kind.llvm not in ("i32", "i64", "float", "double"):
            self._unknown(node)
        code = {"i32": "i", "i64": "l", "float": "f", "double": "d"}[value.kind.llvm]
        name = abi.mangled("sub_group_shuffle", code + "j")
        chosen = self.emit(f"trunc i64 {self.to(lane, UINT64).text} to i32")
        arguments = [(value.kind.llvm, value.text), ("i32", chosen)]
        return self.value(self.call(name, value.kind.llvm, arguments, "convergent"), value.kind)

    def _call_of_AtomicRef(self, node: ast.Call) -> Reference:
        array, index = self._any(node.args[0]), self._expression(node.args[1])
        named = {keyword.arg: self._any(keyword.value) for keyword in node.keywords}
        order = named.pop("memory_order")
        assert not named
        pointer = self.address(array, self.to(index, UINT64).text)
        return Reference(pointer, array.kind, array.space, order)

    def _method(self, called: ast.Attribute, node: ast.Call) -> Any:
        owner = self._any(called.value)
        if owner is _ITEM and called.attr == "get_group":
            return _GROUP
        if owner is _ITEM and called.attr == "get_sub_group":
            return _SUB_GROUP
        if owner is _SUB_GROUP and called.attr in _SUB_GROUP_NUMBERS:
            name = abi.mangled(_SUB_GROUP_NUMBERS[called.attr], "v")
            number = self.emit(self.call(name, "i32", [], "memory(none)"))
            return self.value(f"zext i32 {number} to i64", INT64)
        if isinstance(owner, Reference) and called.attr == "fetch_add":
            return self.fetch_add(owner, self._expression(*node.args))
        if owner not in (_ITEM, _GROUP) or called.attr not in _NUMBERS:
            return self._unknown(node)
        dimension = self._expression(*node.args).written
        assert isinstance(dimension, int)
        if called.attr == "get_range":
            return self.extents[dimension]
        return Value(self._number_of(_NUMBERS[called.attr], dimension), INT64)

    # -- conversions ------------------------------------------------------------------------------


def _bytes_of(kind: Kind) -> int:
    return max(kind.bits, 8) // 8


def _assigned_again(function: ast.FunctionDef) -> set[str]:
    """Return the names that are assigned more than once; a parameter is assigned by the call.

    Loop variables are excluded, since loop bodies do not assign them.
    """
    seen = {argument.arg for argument in function.args.args}
    again: set[str] = set()
    counted = {node.target for node in ast.walk(function) if isinstance(node, ast.For)}
    for node in ast.walk(function):
        if node in counted:
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            (again if node.id in seen else seen).add(node.id)
    return again
