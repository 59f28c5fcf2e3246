"""The text of generated kernels becomes LLVM's, without Numba.

What :mod:`dparray._codegen` writes is a small part of Python: numbers of the dtypes of arrays,
assignments, conditions, loops over ranges, and calls of the functions below. Here it is typed and
translated in one walk; types are as Numba and NumPy have them, so that the same text gives the same
numbers in both. Texts that call functions of users are Numba's, which alone knows Python.
"""

from __future__ import annotations

import ast
import math
import operator
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from dparray import _type_keys
from dparray._compiler import spirv
from dparray.kernel_api import MemoryOrder, MemoryScope


class TranslationError(Exception):
    """A text has what this module does not know; the text is what it is."""


class _Kind(NamedTuple):
    """A type of numbers: ``"b"``, ``"i"``, ``"u"`` or ``"f"``, its bits, its name in LLVM."""

    kind: str
    bits: int
    llvm: str

    @property
    def code(self) -> str:
        """How the names of OpenCL's functions say it."""
        return {32: "f", 64: "d"}[self.bits]

    @property
    def is_integer(self) -> bool:
        return self.kind in "iu"


def _kinds() -> dict[str, _Kind]:
    found = {"bool": _Kind("b", 1, "i1")}
    for bits in (8, 16, 32, 64):
        found[f"int{bits}"] = _Kind("i", bits, f"i{bits}")
        found[f"uint{bits}"] = _Kind("u", bits, f"i{bits}")
    return found | {"float32": _Kind("f", 32, "float"), "float64": _Kind("f", 64, "double")}


_KINDS = _kinds()
_BOOL, _INT32, _INT64, _UINT64 = (_KINDS[name] for name in ("bool", "int32", "int64", "uint64"))
_UINT16, _SINGLE, _DOUBLE = (_KINDS[name] for name in ("uint16", "float32", "float64"))
_POINTER = "ptr addrspace({})"
_GLOBAL, _LOCAL = 1, 3


class _Value(NamedTuple):
    """A number.

    Attributes:
        text: LLVM's.
        kind: its type.
        written: the number as it is written in the text, which takes the type of what is beside it.
        counts: made of the numbers of trips, so it does not overflow.
    """

    text: str
    kind: _Kind
    written: int | float | None = None
    counts: bool = False


class _Array(NamedTuple):
    """A pointer, and the type of what it points to."""

    pointer: str
    kind: _Kind
    space: int


class _Slot(NamedTuple):
    """Memory of a variable that is assigned more than once."""

    pointer: str
    kind: _Kind


class _Reference(NamedTuple):
    """An element that several work-items change."""

    pointer: str
    kind: _Kind
    space: int
    order: int


_ITEM, _GROUP = object(), object()

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
_UNARY = frozenset(
    "acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 fabs floor lgamma "
    "log log10 log1p log2 sin sinh sqrt tan tanh trunc".split()
)
_BINARY = frozenset("atan2 copysign fmod hypot nextafter pow".split())
_MEMBERS: dict[tuple[str, str], Any] = {
    ("math", "inf"): math.inf,
    ("math", "nan"): math.nan,
    ("math", "pi"): math.pi,
    ("math", "e"): math.e,
    **{("MemoryScope", each.name): each for each in MemoryScope},
    **{("MemoryOrder", each.name): each for each in MemoryOrder},
}
_NUMBERS = {
    "get_id": spirv.GLOBAL_ID,
    "get_range": spirv.GLOBAL_SIZE,
    "get_global_id": spirv.GLOBAL_ID,
    "get_global_range": spirv.GLOBAL_SIZE,
    "get_local_id": spirv.LOCAL_ID,
    "get_local_range": spirv.LOCAL_SIZE,
    "get_group_id": spirv.GROUP_ID,
    "get_group_range": spirv.GROUP_COUNT,
}

# Instructions that cost more than a choice, or must not be reached: they stay behind their
# condition.
_NOT_CHOSEN = ("call", "load", "store", "udiv", "sdiv", "urem", "srem", "br ", "fdiv", ":")
_MOST_CHOSEN = 4

# The power of two integers modulo 2**64, as `_codegen.intrinsics` has it.
_INTEGER_POWER = """
define internal i64 @integer_power(i64 %base, i64 %exponent, i1 %is_negative) alwaysinline {
  %is_one = icmp eq i64 %base, 1
  %is_minus_one = icmp eq i64 %base, -1
  %has_inverse = or i1 %is_one, %is_minus_one
  %odd = and i64 %exponent, 1
  %times = select i1 %is_negative, i64 %odd, i64 %exponent
  %inverse = zext i1 %has_inverse to i64
  %start = select i1 %is_negative, i64 %inverse, i64 1
  br label %test
test:
  %left = phi i64 [ %times, %0 ], [ %halved, %step ]
  %factor = phi i64 [ %base, %0 ], [ %squared, %step ]
  %result = phi i64 [ %start, %0 ], [ %next, %step ]
  %is_done = icmp eq i64 %left, 0
  br i1 %is_done, label %end, label %step
step:
  %bit = and i64 %left, 1
  %is_odd = icmp ne i64 %bit, 0
  %product = mul i64 %result, %factor
  %next = select i1 %is_odd, i64 %product, i64 %result
  %squared = mul i64 %factor, %factor
  %halved = lshr i64 %left, 1
  br label %test
end:
  ret i64 %result
}
"""


def translated(source: str, types: Sequence[str]) -> tuple[str, str]:
    """The entry point of a generated kernel, and its module in LLVM's text, not yet optimised.

    Args:
        source: the text, of one function.
        types: the type keys of its parameters, the item first.

    Raises:
        TranslationError: it has something that generated kernels do not have.
    """
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    return spirv.entry_name(function.name), _Function(function, types).module()


def _constant(number: float, kind: _Kind) -> str:
    """A number as LLVM writes it."""
    if kind.kind == "f":
        rounded = float(np.float32(number)) if kind.bits == 32 else float(number)
        return "0x" + struct.pack(">d", rounded).hex().upper()
    if kind.kind == "b":
        return "true" if number else "false"
    wrapped = int(number) % (1 << kind.bits)
    is_above = kind.kind == "i" and wrapped >> (kind.bits - 1)
    return str(wrapped - (1 << kind.bits) if is_above else wrapped)


def _written(number: float) -> _Value:
    """A number that is written in the text."""
    if isinstance(number, bool):
        return _Value(_constant(number, _BOOL), _BOOL)
    kind = _INT64 if isinstance(number, int) else _DOUBLE
    return _Value(_constant(number, kind), kind, number)


def _is_weak(value: _Value) -> bool:
    """Whether it is a written integer that can be a uint64."""
    return isinstance(value.written, int) and value.written >= 0


def _common(first: _Value, second: _Value) -> _Kind:
    """The type in which two numbers are computed with."""
    a, b = first.kind, second.kind
    if "f" in (a.kind, b.kind):
        is_single = all(each.kind == "f" and each.bits == 32 for each in (a, b))
        return _SINGLE if is_single else _DOUBLE
    if (a == _UINT64 and _is_weak(second)) or (b == _UINT64 and _is_weak(first)):
        return _UINT64
    return _UINT64 if (a.kind, b.kind) == ("u", "u") else _INT64


class _Function:
    """Translates one function.

    Attributes:
        lines: of its body so far.
        names: what the names in the text stand for.
        declared: the declarations of the functions that it calls.
    """

    def __init__(self, function: ast.FunctionDef, types: Sequence[str]) -> None:
        self.function = function
        self.lines: list[str] = []
        self.allocated: list[str] = []
        self.names: dict[str, Any] = {}
        self.declared: dict[str, None] = {}
        self.count = 0
        self.block = "entry"
        self.several = _assigned_again(function)
        self.parameters: list[str] = []
        for argument, key in zip(function.args.args, types, strict=True):
            self._parameter(argument.arg, _type_keys.parse(key))

    def module(self) -> str:
        """The text of the module."""
        self._body(self.function.body)
        name = spirv.entry_name(self.function.name)
        head = f"define spir_kernel void @{name}({', '.join(self.parameters)}) {{\nentry:\n"
        body = "\n".join([*self.allocated, *self.lines])
        definition = f"{head}{body}\n  ret void\n}}\n"
        return "\n".join([*self.declared, definition, spirv.OPENCL_VERSION])

    # -- what is written --------------------------------------------------------------------------

    def _new(self, prefix: str = "v") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def _emit(self, instruction: str) -> str:
        """Write an instruction; the name of its result."""
        name = f"%{self._new()}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def _value(self, instruction: str, kind: _Kind, counts: bool = False) -> _Value:
        return _Value(self._emit(instruction), kind, counts=counts)

    def _do(self, instruction: str) -> None:
        self.lines.append(f"  {instruction}")

    def _begin(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")
        self.block = label

    def _call(
        self, name: str, result: str, arguments: Sequence[tuple[str, str]], attribute: str = ""
    ) -> str:
        """The instruction that calls a function of the device; arguments are types and values."""
        kinds = ", ".join(kind for kind, _ in arguments)
        self.declared[f"declare spir_func {result} @{name}({kinds}) nounwind {attribute}"] = None
        given = ", ".join(f"{kind} {value}" for kind, value in arguments)
        attribute = "convergent" if attribute == "convergent" else ""
        return f"call spir_func {result} @{name}({given}) {attribute}".rstrip()

    def _mathematics(self, name: str, kind: _Kind, arguments: Sequence[str]) -> _Value:
        mangled = spirv.mangled(name, kind.code * len(arguments))
        given = [(kind.llvm, argument) for argument in arguments]
        return self._value(self._call(mangled, kind.llvm, given, "memory(none)"), kind)

    # -- parameters and variables -----------------------------------------------------------------

    def _parameter(self, name: str, key: _type_keys.TypeKey) -> None:
        if key.is_item:
            self.names[name] = _ITEM
            return
        kind = _KINDS[key.numpy_dtype.name]
        own = f"%{name}"
        if key.kind == "scalar":
            self.parameters.append(f"{kind.llvm} {own}")
            self._assign(name, _Value(own, kind))
            return
        if key.ndim != 1 or key.order not in ("C", ""):
            raise TranslationError(f"an array {key}")
        space = _LOCAL if key.kind == "local" else _GLOBAL
        # The number of elements, their size, the pointer, the extent and the stride.
        pointer = _POINTER.format(space)
        self.parameters += [f"i64 {own}.{place}" for place in range(2)]
        self.parameters += [f"{pointer} {own}"] + [f"i64 {own}.{place}" for place in range(2, 4)]
        self.names[name] = _Array(own, kind, space)

    def _assign(self, name: str, value: Any) -> None:
        if name not in self.several or not isinstance(value, _Value):
            self.names[name] = value
            return
        slot = self.names.get(name)
        if slot is None:
            slot = _Slot(f"%{self._new(name + '.')}", value.kind)
            self.allocated.append(f"  {slot.pointer} = alloca {value.kind.llvm}")
            self.names[name] = slot
        if slot.kind != value.kind:
            raise TranslationError(f"{name} is first {slot.kind.llvm}, then {value.kind.llvm}")
        self._do(f"store {value.kind.llvm} {value.text}, ptr {slot.pointer}")

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
        elif isinstance(target, ast.Subscript):
            array, pointer = self._element(target)
            value = self._to(self._expression(statement.value), array.kind)
            self._store(value, pointer, array)
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
        self._do("ret void")
        self._begin(self._new("dead"))

    def _if_statement(self, statement: ast.If) -> None:
        condition = self._truth(self._expression(statement.test))
        then, other, end = (self._new(each) for each in ("then", "else", "end"))
        self._do(f"br i1 {condition.text}, label %{then}, label %{other}")
        for label, body in ((then, statement.body), (other, statement.orelse)):
            self._begin(label)
            self._body(body)
            self._do(f"br label %{end}")
        self._begin(end)

    def _while_statement(self, statement: ast.While) -> None:
        with self._loop(lambda: self._truth(self._expression(statement.test))):
            self._body(statement.body)

    def _for_statement(self, statement: ast.For) -> None:
        call, target = statement.iter, statement.target
        is_range = isinstance(call, ast.Call) and ast.unparse(call.func) == "range"
        if not is_range or not isinstance(target, ast.Name) or target.id in self.several:
            self._unknown(statement)
        assert isinstance(call, ast.Call)
        assert isinstance(target, ast.Name)
        ends = [self._expression(argument) for argument in call.args]
        first, stop = (_written(0), ends[0]) if len(ends) == 1 else ends[:2]
        step = ends[2].written if len(ends) == 3 else 1
        if not isinstance(step, int) or step < 1:
            self._unknown(statement)
        kind = _common(first, stop)
        first, stop = self._to(first, kind), self._to(stop, kind)
        place = f"%{self._new(target.id + '.')}"
        self.allocated.append(f"  {place} = alloca {kind.llvm}")
        self._do(f"store {kind.llvm} {first.text}, ptr {place}")
        order = "slt" if kind == _INT64 else "ult"

        def goes_on() -> _Value:
            at = self._value(f"load {kind.llvm}, ptr {place}", kind, counts=True)
            self.names[target.id] = at
            return self._value(f"icmp {order} i64 {at.text}, {stop.text}", _BOOL)

        with self._loop(goes_on):
            self._body(statement.body)
            flag = "nsw" if kind == _INT64 else "nuw"
            after = self._emit(f"add {flag} i64 {self.names[target.id].text}, {step}")
            self._do(f"store i64 {after}, ptr {place}")

    @contextmanager
    def _loop(self, goes_on: Callable[[], _Value]) -> Iterator[None]:
        """A loop; its body is written inside."""
        test, body, end = (self._new(each) for each in ("test", "body", "end"))
        self._do(f"br label %{test}")
        self._begin(test)
        self._do(f"br i1 {goes_on().text}, label %{body}, label %{end}")
        self._begin(body)
        yield
        self._do(f"br label %{test}")
        self._begin(end)

    # -- memory -----------------------------------------------------------------------------------

    def _element(self, subscript: ast.Subscript) -> tuple[_Array, str]:
        """The array of an element, and its address."""
        array = self._any(subscript.value)
        if not isinstance(array, _Array):
            self._unknown(subscript)
        index = self._expression(subscript.slice)
        if index.kind.kind == "i" and not _is_weak(index):
            # Negative ones count from the end, which nothing that is generated does.
            raise TranslationError(f"the index {ast.unparse(subscript.slice)} is signed")
        index = self._to(index, _UINT64)
        return array, self._address(array, index.text)

    def _address(self, array: _Array, index: str) -> str:
        element = _in_memory(array.kind)
        pointer = _POINTER.format(array.space)
        return self._emit(f"getelementptr {element}, {pointer} {array.pointer}, i64 {index}")

    def _store(self, value: _Value, pointer: str, array: _Array) -> None:
        text = value.text
        if array.kind == _BOOL:
            text = self._emit(f"zext i1 {text} to i8")
        self._do(f"store {_in_memory(array.kind)} {text}, {_POINTER.format(array.space)} {pointer}")

    # -- expressions ------------------------------------------------------------------------------

    def _expression(self, node: ast.expr) -> _Value:
        """The number that an expression gives."""
        value = self._any(node)
        if not isinstance(value, _Value):
            self._unknown(node)
        assert isinstance(value, _Value)
        return value

    def _any(self, node: ast.expr) -> Any:
        """What an expression gives: a number, an array, a group."""
        translate = getattr(self, f"_{type(node).__name__.lower()}_expression", self._unknown)
        return translate(node)

    def _name_expression(self, node: ast.Name) -> Any:
        known = self.names.get(node.id)
        if known is None:
            raise TranslationError(f"the name {node.id}")
        if isinstance(known, _Slot):
            return self._value(f"load {known.kind.llvm}, ptr {known.pointer}", known.kind)
        return known

    def _constant_expression(self, node: ast.Constant) -> _Value:
        assert isinstance(node.value, bool | int | float)
        return _written(node.value)

    def _attribute_expression(self, node: ast.Attribute) -> Any:
        owner = node.value
        key = (owner.id, node.attr) if isinstance(owner, ast.Name) else None
        if key not in _MEMBERS:
            return self._unknown(node)
        member = _MEMBERS[key]
        return _written(member) if type(member) is float else member

    def _subscript_expression(self, node: ast.Subscript) -> _Value:
        array, pointer = self._element(node)
        kind = array.kind
        text = self._emit(f"load {_in_memory(kind)}, {_POINTER.format(array.space)} {pointer}")
        return self._value(f"icmp ne i8 {text}, 0", kind) if kind == _BOOL else _Value(text, kind)

    def _unaryop_expression(self, node: ast.UnaryOp) -> _Value:
        value = self._expression(node.operand)
        operation = type(node.op)
        if operation is ast.Not:
            return self._value(f"xor i1 {self._truth(value).text}, true", _BOOL)
        if operation is ast.UAdd:
            return value
        if operation is ast.USub and value.written is not None:
            return _written(-value.written)
        if value.kind.kind == "f":
            if operation is not ast.USub:
                self._unknown(node)
            return self._value(f"fneg {value.kind.llvm} {value.text}", value.kind)
        wide = self._to(value, _UINT64 if value.kind.kind == "u" else _INT64)
        if operation is ast.USub:
            return self._value(f"sub i64 0, {wide.text}", wide.kind)
        return self._value(f"xor i64 {wide.text}, -1", wide.kind)

    def _binop_expression(self, node: ast.BinOp) -> _Value:
        first, second = self._expression(node.left), self._expression(node.right)
        operation = type(node.op)
        if first.written is not None and second.written is not None and operation in _OF_WRITTEN:
            return _written(_OF_WRITTEN[operation](first.written, second.written))
        if operation in _BITWISE:
            kind = _BOOL if first.kind == second.kind == _BOOL else _common(first, second)
            if kind.kind == "f":
                self._unknown(node)
            a, b = self._to(first, kind), self._to(second, kind)
            return self._value(f"{_BITWISE[operation]} {kind.llvm} {a.text}, {b.text}", kind)
        if operation in (ast.LShift, ast.RShift):
            return self._shift(operation, first, second)
        if operation is ast.Div:
            kind = _common(first, second)
            kind = kind if kind.kind == "f" else _DOUBLE
            a, b = self._to(first, kind), self._to(second, kind)
            return self._value(f"fdiv {kind.llvm} {a.text}, {b.text}", kind)
        kind = _common(first, second)
        a, b = self._to(first, kind), self._to(second, kind)
        if operation in _ARITHMETIC:
            name = _ARITHMETIC[operation][kind.kind == "f"]
            counts = kind == _INT64 and all(
                each.counts or each.written is not None for each in (first, second)
            )
            flag = " nsw" if counts else ""
            return self._value(f"{name}{flag} {kind.llvm} {a.text}, {b.text}", kind, counts)
        if operation not in (ast.FloorDiv, ast.Mod) or kind.kind == "f":
            self._unknown(node)
        place = int(operation is ast.Mod)
        return (self._unsigned_quotient if kind == _UINT64 else self._floored)(a, b, place)

    def _shift(self, operation: type, first: _Value, second: _Value) -> _Value:
        """Shifts by 64 bits or more, or by a negative number, lose all bits."""
        kind = _UINT64 if first.kind.kind == "u" else _INT64
        value = self._to(first, kind).text
        places = self._to(second, _UINT64 if second.kind.kind == "u" else _INT64).text
        fits = self._emit(f"icmp ule i64 {places}, 63")
        if operation is ast.RShift and kind == _INT64:
            places = self._emit(f"select i1 {fits}, i64 {places}, i64 63")
            return self._value(f"ashr i64 {value}, {places}", kind)
        name = "shl" if operation is ast.LShift else "lshr"
        places = self._emit(f"select i1 {fits}, i64 {places}, i64 0")
        shifted = self._emit(f"{name} i64 {value}, {places}")
        return self._value(f"select i1 {fits}, i64 {shifted}, i64 0", kind)

    def _unsigned_quotient(self, a: _Value, b: _Value, place: int) -> _Value:
        """The quotient or the remainder; 0 of a division by 0."""
        name = ("udiv", "urem")[place]
        if b.text != "0" and b.text.isdigit():
            return self._value(f"{name} i64 {a.text}, {b.text}", _UINT64)
        is_none = self._emit(f"icmp eq i64 {b.text}, 0")
        before, divides, end = self.block, self._new("divides"), self._new("end")
        self._do(f"br i1 {is_none}, label %{end}, label %{divides}")
        self._begin(divides)
        found = self._emit(f"{name} i64 {a.text}, {b.text}")
        self._do(f"br label %{end}")
        self._begin(end)
        return self._value(f"phi i64 [ 0, %{before} ], [ {found}, %{divides} ]", _UINT64)

    def _floored(self, a: _Value, b: _Value, place: int) -> _Value:
        """The floored quotient or the remainder of signed integers; 0 of a division by 0."""
        by_zero = self._emit(f"icmp eq i64 {b.text}, 0")
        by_minus_one = self._emit(f"icmp eq i64 {b.text}, -1")
        is_special = self._emit(f"or i1 {by_zero}, {by_minus_one}")
        safe = self._emit(f"select i1 {is_special}, i64 1, i64 {b.text}")
        rest = self._emit(f"srem i64 {a.text}, {safe}")
        has_rest = self._emit(f"icmp ne i64 {rest}, 0")
        signs = self._emit(f"xor i64 {rest}, {safe}")
        differ = self._emit(f"icmp slt i64 {signs}, 0")
        is_below = self._emit(f"and i1 {has_rest}, {differ}")
        if place:
            moved = self._emit(f"add i64 {rest}, {safe}")
            return self._value(f"select i1 {is_below}, i64 {moved}, i64 {rest}", _INT64)
        quotient = self._emit(f"sdiv i64 {a.text}, {safe}")
        less = self._emit(f"zext i1 {is_below} to i64")
        quotient = self._emit(f"sub i64 {quotient}, {less}")
        negative = self._emit(f"sub i64 0, {a.text}")
        quotient = self._emit(f"select i1 {by_minus_one}, i64 {negative}, i64 {quotient}")
        return self._value(f"select i1 {by_zero}, i64 0, i64 {quotient}", _INT64)

    def _compare_expression(self, node: ast.Compare) -> _Value:
        if len(node.ops) != 1:
            self._unknown(node)
        first, second = self._expression(node.left), self._expression(node.comparators[0])
        order = _COMPARISONS[type(node.ops[0])]
        kinds = first.kind.kind + second.kind.kind
        if kinds == "bb":
            a, b = (self._to(each, _INT64) for each in (first, second))
            return self._compared(order, a, b, _INT64)
        kind = _common(first, second)
        if kind.kind != "f" and kinds in ("iu", "ui") and kind == _INT64:
            unsigned = first if kinds == "ui" else second
            if unsigned.kind.bits == 64:
                return self._compare_mixed(order, first, second)
        a, b = self._to(first, kind), self._to(second, kind)
        return self._compared(order, a, b, kind)

    def _compared(self, order: str, a: _Value, b: _Value, kind: _Kind) -> _Value:
        if kind.kind == "f":
            # Only "not equal" is true of a NaN.
            name = "fcmp " + ("une" if order == "ne" else f"o{order}")
        elif order in ("eq", "ne"):
            name = f"icmp {order}"
        else:
            name = f"icmp {'s' if kind.kind == 'i' else 'u'}{order}"
        return self._value(f"{name} {kind.llvm} {a.text}, {b.text}", _BOOL)

    def _compare_mixed(self, order: str, first: _Value, second: _Value) -> _Value:
        """A uint64 beside a signed integer: negative ones are below all others."""
        is_first = first.kind.kind == "i"
        signed = self._to(first if is_first else second, _INT64)
        is_negative = self._emit(f"icmp slt i64 {signed.text}, 0")
        a, b = (_Value(self._to(each, _INT64).text, _UINT64) for each in (first, second))
        found = self._compared(order, a, b, _UINT64)
        answer = order == "ne" or (order in ("lt", "le") if is_first else order in ("gt", "ge"))
        text = "true" if answer else "false"
        return self._value(f"select i1 {is_negative}, i1 {text}, i1 {found.text}", _BOOL)

    def _boolop_expression(self, node: ast.BoolOp) -> _Value:
        is_and = isinstance(node.op, ast.And)
        value = self._truth(self._expression(node.values[0]))
        for operand in node.values[1:]:
            constant = _Value("false" if is_and else "true", _BOOL)

            def right(operand: ast.expr = operand) -> _Value:
                return self._truth(self._expression(operand))

            def left(constant: _Value = constant) -> _Value:
                return constant

            value = self._chosen(value, right, left) if is_and else self._chosen(value, left, right)
        return value

    def _ifexp_expression(self, node: ast.IfExp) -> _Value:
        condition = self._truth(self._expression(node.test))
        return self._chosen(
            condition,
            lambda: self._expression(node.body),
            lambda: self._expression(node.orelse),
        )

    def _chosen(
        self, condition: _Value, then: Callable[[], _Value], other: Callable[[], _Value]
    ) -> _Value:
        """One of two values, each computed only where it is the one, unless that is cheap."""
        before, start = self.lines, self.block
        parts = []
        for label, make in ((self._new("then"), then), (self._new("else"), other)):
            self.lines = []
            self.block = label
            value = make()
            parts.append((label, self.block, value, self.lines))
        kind = self._unified(parts[0][2], parts[1][2])
        values = []
        for _, _, value, lines in parts:
            self.lines = lines
            values.append(self._to(value, kind).text)
        self.lines, self.block = before, start
        texts = [line for *_, lines in parts for line in lines]
        if len(texts) <= _MOST_CHOSEN and not any(
            word in line for line in texts for word in _NOT_CHOSEN
        ):
            self.lines += texts
            chosen = f"select i1 {condition.text}, {kind.llvm} {values[0]}, {kind.llvm} {values[1]}"
            return self._value(chosen, kind)
        end = self._new("end")
        self._do(f"br i1 {condition.text}, label %{parts[0][0]}, label %{parts[1][0]}")
        for label, _, _, lines in parts:
            self._begin(label)
            self.lines += lines
            self._do(f"br label %{end}")
        self._begin(end)
        pairs = ", ".join(
            f"[ {value}, %{last} ]" for value, (_, last, _, _) in zip(values, parts, strict=True)
        )
        return self._value(f"phi {kind.llvm} {pairs}", kind)

    def _unified(self, first: _Value, second: _Value) -> _Kind:
        """The type of what is one or the other."""
        return first.kind if first.kind == second.kind else _common(first, second)

    # -- calls ------------------------------------------------------------------------------------

    def _call_expression(self, node: ast.Call) -> Any:
        called = node.func
        if isinstance(called, ast.Attribute):
            if isinstance(called.value, ast.Name) and called.value.id == "math":
                return self._call_of_math(called.attr, node)
            return self._method(called, node)
        assert isinstance(called, ast.Name)
        if called.id in _KINDS:
            return self._to(self._expression(*node.args), _KINDS[called.id])
        translate = getattr(self, f"_call_of_{called.id}", None)
        return self._unknown(node) if translate is None else translate(node)

    def _call_of_math(self, name: str, node: ast.Call) -> _Value:
        values = [self._expression(argument) for argument in node.args]
        if name not in (_UNARY if len(values) == 1 else _BINARY):
            self._unknown(node)
        kind = values[0].kind
        if len(values) == 2:
            kind = _common(*values)
        if kind.kind != "f":
            kind = _DOUBLE
        return self._mathematics(name, kind, [self._to(each, kind).text for each in values])

    def _call_of_abs(self, node: ast.Call) -> _Value:
        value = self._expression(*node.args)
        if value.written is not None:
            return _written(abs(value.written))
        if value.kind.kind == "f":
            return self._mathematics("fabs", value.kind, [value.text])
        if value.kind.kind == "u":
            return self._to(value, _UINT64)
        wide = self._to(value, _INT64)
        negative = self._emit(f"sub i64 0, {wide.text}")
        is_negative = self._emit(f"icmp slt i64 {wide.text}, 0")
        return self._value(f"select i1 {is_negative}, i64 {negative}, i64 {wide.text}", _INT64)

    def _call_of_half_value(self, node: ast.Call) -> _Value:
        return self._extended(self._to(self._expression(*node.args), _UINT16).text)

    def _call_of_half_bits(self, node: ast.Call) -> _Value:
        return self._value(f"bitcast half {self._half(node)} to i16", _UINT16)

    def _call_of_half(self, node: ast.Call) -> _Value:
        return self._value(f"fpext half {self._half(node)} to float", _SINGLE)

    def _extended(self, bits: str) -> _Value:
        number = self._emit(f"bitcast i16 {bits} to half")
        return self._value(f"fpext half {number} to float", _SINGLE)

    def _half(self, node: ast.Call) -> str:
        """The half nearest to a number."""
        value = self._expression(*node.args)
        if value.kind.kind != "f":
            value = self._to(value, _SINGLE)
        return self._emit(f"fptrunc {value.kind.llvm} {value.text} to half")

    def _call_of_integer_power(self, node: ast.Call) -> _Value:
        base, exponent = (self._expression(argument) for argument in node.args)
        wide = [self._to(each, _UINT64 if each.kind.kind == "u" else _INT64).text for each in
                (base, exponent)]
        is_negative = "false"
        if exponent.kind.kind == "i":
            is_negative = self._emit(f"icmp slt i64 {wide[1]}, 0")
        self.declared[_INTEGER_POWER] = None
        given = f"i64 {wide[0]}, i64 {wide[1]}, i1 {is_negative}"
        return self._value(f"call i64 @integer_power({given})", _UINT64)

    def _call_of_group_barrier(self, node: ast.Call) -> None:
        group, scope = (self._any(argument) for argument in node.args)
        assert group is _GROUP
        given = [spirv.scope(MemoryScope.WORK_GROUP), spirv.scope(scope)]
        given.append(spirv.semantics(MemoryOrder.SEQ_CST))
        name = spirv.mangled("__spirv_ControlBarrier", "jjj")
        arguments = [("i32", str(each)) for each in given]
        self._do(self._call(name, "void", arguments, "convergent"))

    def _call_of_AtomicRef(self, node: ast.Call) -> _Reference:  # noqa: N802  a name in the texts
        array, index = self._any(node.args[0]), self._expression(node.args[1])
        named = {keyword.arg: self._any(keyword.value) for keyword in node.keywords}
        order = named.pop("memory_order")
        assert not named
        pointer = self._address(array, self._to(index, _UINT64).text)
        return _Reference(pointer, array.kind, array.space, order)

    def _method(self, called: ast.Attribute, node: ast.Call) -> Any:
        owner = self._any(called.value)
        if owner is _ITEM and called.attr == "get_group":
            return _GROUP
        if isinstance(owner, _Reference) and called.attr == "fetch_add":
            return self._fetch_add(owner, self._expression(*node.args))
        if owner not in (_ITEM, _GROUP) or called.attr not in _NUMBERS:
            return self._unknown(node)
        dimension = self._expression(*node.args)
        name = spirv.mangled(_NUMBERS[called.attr], "j")
        call = self._call(name, "i64", [("i32", dimension.text)], "memory(none)")
        return self._value(call, _INT64)

    def _fetch_add(self, reference: _Reference, value: _Value) -> _Value:
        """Add to an element of 32-bit integers; its value before."""
        kind = reference.kind
        assert kind == _INT32
        pointer = f"PU3AS{reference.space}i"
        name = spirv.mangled("__spirv_AtomicIAdd", pointer + "jji")
        arguments = [
            (_POINTER.format(reference.space), reference.pointer),
            ("i32", str(spirv.scope(MemoryScope.DEVICE))),
            ("i32", str(spirv.semantics(reference.order))),
            (kind.llvm, self._to(value, kind).text),
        ]
        return self._value(self._call(name, kind.llvm, arguments, "convergent"), kind)

    # -- conversions ------------------------------------------------------------------------------

    def _truth(self, value: _Value) -> _Value:
        return self._to(value, _BOOL)

    def _to(self, value: _Value, kind: _Kind) -> _Value:
        """A number in another type."""
        own = value.kind
        if value.written is not None:
            if kind.kind == "b":
                return _Value(_constant(value.written != 0, kind), kind)
            if isinstance(value.written, int) or kind.kind == "f":
                return _Value(_constant(value.written, kind), kind)
        if own == kind:
            return value._replace(written=None)
        if kind.kind == "b":
            if own.kind == "f":
                return self._value(f"fcmp une {own.llvm} {value.text}, 0.0", kind)
            return self._value(f"icmp ne {own.llvm} {value.text}, 0", kind)
        if kind.kind == "f":
            if own.kind == "f":
                name = "fpext" if kind.bits > own.bits else "fptrunc"
            else:
                name = "sitofp" if own.kind == "i" else "uitofp"
        elif own.kind == "f":
            name = "fptosi" if kind.kind == "i" else "fptoui"
        elif own.bits == kind.bits:
            return _Value(value.text, kind, counts=value.counts)
        elif own.bits > kind.bits:
            name = "trunc"
        else:
            name = "sext" if own.kind == "i" else "zext"
        return self._value(f"{name} {own.llvm} {value.text} to {kind.llvm}", kind)


def _in_memory(kind: _Kind) -> str:
    return "i8" if kind.kind == "b" else kind.llvm


def _assigned_again(function: ast.FunctionDef) -> set[str]:
    """The names that are assigned more than once; parameters are, when they are called.

    Those of loops are not among them: what a loop counts is not assigned in its body.
    """
    seen = {argument.arg for argument in function.args.args}
    again = set()
    counted = {node.target for node in ast.walk(function) if isinstance(node, ast.For)}
    for node in ast.walk(function):
        if node in counted:
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            (again if node.id in seen else seen).add(node.id)
    return again
