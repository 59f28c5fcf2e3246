"""Operations on numbers, vectors and complex numbers, as ops of the IR."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dparray._ir.instructions import Op, Place, constant
from dparray._ir.types import BOOL, F64, I8, I64, U64, Pointer, Type, of_dtype
from dparray._language import prelude, promotion
from dparray._language.constants import is_too_large
from dparray._language.errors import NO_STRINGS, NOT_AN_ELEMENT, Refusal
from dparray._language.values import (
    NONE,
    NUMBERS,
    Array,
    Complex,
    Constant,
    Number,
    Optional,
    Range,
    Text,
    Tuple,
    described,
    is_number,
)
from dparray.kernel_api import vectors as rules

_ARITHMETIC: dict[type, str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
}
_BITWISE: dict[type, str] = {ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor"}
_SHIFTS: dict[type, str] = {ast.LShift: "shl", ast.RShift: "shr"}
_ORDERS: dict[type, str] = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}
#: Python's functions for the operators, which compute what is known at compile time.
_PYTHON: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}
#: How operators are written, for messages.
SIGNS: dict[type, str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.MatMult: "@",
    ast.USub: "-",
    ast.UAdd: "+",
}
_COMPLEX: dict[type, Any] = {
    ast.Add: prelude.complex_add,
    ast.Sub: prelude.complex_sub,
    ast.Mult: prelude.complex_mul,
    ast.Div: prelude.complex_div,
}
#: The names of operations in the rules of vectors.
_VECTORS: dict[type, str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
}
#: Up to this exponent a power is a product.
_MAX_PRODUCT = 64


class Numbers:
    """The part of the front end that adds ops for numbers.

    Attributes:
        body: where ops are added now.
        births: the number of each op in the order of creation.
        python_integers: the integers that ``int``, ``round`` and ``math.floor`` return.
        place: the statement that is being translated.
    """

    body: list[Op]
    births: dict[Op, int]
    python_integers: set[Op]
    place: Place | None

    # -- ops --------------------------------------------------------------------------------------

    def op(
        self,
        name: str,
        kind: Any,
        *operands: Op,
        attribute: Any = None,
        marks: frozenset[str] = frozenset(),
    ) -> Op:
        """Add an op."""
        op = self.new(name, kind, *operands, attribute=attribute, marks=marks)
        self.body.append(op)
        return op

    def new(
        self,
        name: str,
        kind: Any = None,
        *operands: Op,
        attribute: Any = None,
        marks: frozenset[str] = frozenset(),
    ) -> Op:
        """Create an op that is in no body yet."""
        op = Op(name, kind, operands, attribute, self.place, marks)
        self.births[op] = len(self.births) + 1
        return op

    def constant(self, value: Any, kind: Type) -> Op:
        """Return a constant; integers wrap."""
        return constant(value, kind)

    def number(self, value: Any) -> Number:
        """Return a value as a number that is computed."""
        if isinstance(value, Number):
            return value
        if isinstance(value, Constant) and isinstance(value.value, NUMBERS):
            kind = self.type_of(value)
            op = self.constant(value.value, kind)
            return Number(op, self.is_weak(value), self.is_natural(value))
        raise Refusal(self.not_a_number(value))

    def not_a_number(self, value: Any) -> str:
        """Return why a value that is computed with is not a number."""
        if value == Constant(None):
            return (
                "a value used here is None, which cannot be stored or computed with; a kernel can "
                "only ask whether a value is None"
            )
        if isinstance(value, Optional):
            own = value.value
            name = self.type_of(own).name if is_number(own) else described(own)
            return (
                f"a value used here is None on some path, where {name} is needed: give it a "
                "number on all of them"
            )
        if isinstance(value, Constant) and isinstance(value.value, str | bytes):
            return NO_STRINGS
        if isinstance(value, Array):
            return f"an operand is {described(value)}, {NOT_AN_ELEMENT}"
        return f"a number is needed here, and this is {described(value)}"

    def type_of(self, value: Any) -> Type:
        """Return the type of a number."""
        if type(value) is Number:
            return value.type
        if isinstance(value, Constant):
            known = value.value
            if type(known) is float:
                return F64
            if isinstance(known, bool | np.bool_):
                return BOOL
            if isinstance(known, np.bool_ | np.integer | np.floating):
                kind = of_dtype(known.dtype)
                return self.rules.rounded(kind) if kind.is_float else kind
            if isinstance(known, int):
                if not -(1 << 63) <= known < 1 << 64:
                    raise Refusal(
                        f"the integer {known} does not fit into 64 bits: write a floating-point "
                        "number, as in 1e20"
                    )
                return I64 if known < 1 << 63 else U64
            if isinstance(known, float):
                return F64
        return self.number(value).type

    @property
    def rules(self) -> promotion.Rules:
        """The rules of types in the function that is being translated."""
        raise NotImplementedError

    def is_weak(self, value: Any) -> bool:
        """Return whether a value takes the type of what it meets.

        This is a Python number; in the rules of Numba an integer of the source that is not
        negative.
        """
        if isinstance(value, Constant):
            if self.rules.is_numpy:
                return type(value.value) in (bool, int, float)
            return value.is_weak and type(value.value) is int and value.value >= 0
        return isinstance(value, Number) and value.is_weak

    def python(self, value: Any) -> Any:
        """Return a value as a Python number, for which the rules of Numba have no type."""
        if not self.rules.is_numpy:
            return value
        if isinstance(value, Tuple):
            return replace(value, items=tuple(map(self.python, value.items)))
        is_number = isinstance(value, Number) and value.type.lanes == 1
        return replace(value, is_weak=True) if is_number else value

    def strong(self, value: Any) -> Any:
        """Return a value as one with a type of its own: for functions with the rules of Numba."""
        if isinstance(value, Tuple):
            return replace(value, items=tuple(map(self.strong, value.items)))
        if isinstance(value, Complex):
            return Complex(self.strong(value.real), self.strong(value.imag))
        return replace(value, is_weak=False) if isinstance(value, Number) else value

    def is_natural(self, value: Any) -> bool:
        """Return whether a value is an integer that is not negative."""
        if isinstance(value, Constant):
            return not isinstance(value.value, float | np.floating) and bool(value.value >= 0)
        return value.is_natural or value.type.kind in "ub"

    def relies(self, *values: Any) -> frozenset[Op]:
        """Return the parameters that must not be negative so that values are natural."""
        return frozenset().union(*(each.relies for each in values if isinstance(each, Number)))

    def common(self, values: Sequence[Any]) -> Type:
        """Return the type of a value that is one of several."""
        kind, is_weak = self.type_of(values[0]), self.is_weak(values[0])
        for value in values[1:]:
            other, weak = self.type_of(value), self.is_weak(value)
            if kind == other:
                pass
            elif kind.lanes == other.lanes == 1:
                kind = self.rules.joined(kind, other, (is_weak, weak))
            else:
                kind = self.common_vector(kind, other)
            is_weak = is_weak and weak
        return kind

    def common_vector(self, a: Type, b: Type, operation: str = "add") -> Type:
        """Return the type in which a vector and a vector or a number are combined."""
        kind: Type | None = ruled(promotion.vectors, operation, a, b)
        assert kind is not None
        return kind

    def to(self, value: Any, kind: Type) -> Number:
        """Return a number in a type."""
        if isinstance(value, Constant) and isinstance(value.value, NUMBERS) and kind.lanes == 1:
            known = value.value
            if kind.kind == "b":
                return Number(self.constant(bool(known), kind))
            self.type_of(value)  # which refuses integers that are too large
            self.check_fits(known, kind)
            if isinstance(known, int | np.integer | bool | np.bool_) or kind.is_float:
                return Number(self.constant(known, kind), is_natural=self.is_natural(value))
        number = self.number(value)
        if number.type == kind:
            if not number.is_weak:
                return number
            return Number(number.op, False, number.is_natural, number.relies)
        if kind.lanes > 1 and number.type.lanes == 1:
            one = self.to(number, kind.scalar).op
            return Number(self.op("pack", kind, *[one] * kind.lanes))
        if number.type.lanes != kind.lanes:
            raise Refusal(
                f"a number is needed here, and this is a vector of {number.type.lanes}: take one "
                "of its elements, as in v[0]"
            )
        before = number.op.operands[0] if number.op.name == "convert" else number.op
        if before.type == kind and kind.is_float and number.type == F64:
            return Number(before)  # float(x) of a float32 that meets another one
        keeps = kind.is_integer and kind.bits == 64 and not number.type.is_float
        # A large uint64 is negative as an int64.
        natural = keeps and self.is_natural(number) and (number.type != U64 or number.is_natural)
        return Number(self.op("convert", kind, number.op), False, natural, number.relies)

    def check_fits(self, known: Any, kind: Type) -> None:
        """Refuse an integer of the source that does not fit the integers it meets, as in NumPy."""
        if type(known) is not int or not (self.rules.is_numpy and kind.is_integer):
            return
        limits = np.iinfo(kind.dtype)
        if not limits.min <= known <= limits.max:
            raise Refusal(
                f"the integer {known} does not fit {kind.name}, the type of what it meets: convert "
                "that to a wider type first, as in np.int64(x[i])"
            )

    def truth(self, value: Any) -> Number:
        """Return whether a value is true."""
        if isinstance(value, Complex):
            return Number(self.op("or", BOOL, self.truth(value.real).op, self.truth(value.imag).op))
        if isinstance(value, Tuple):
            return self.to(Constant(bool(value.items)), BOOL)
        if isinstance(value, Constant):
            return Number(self.constant(bool(value.value), BOOL))
        if isinstance(value, Array):
            raise Refusal(
                "whether a whole array is true is not known in a kernel, which works on elements: "
                "ask for one of them, as in if x[i]"
            )
        number = self.number(value)
        if number.type.lanes > 1:
            raise Refusal(rules.NO_TRUTH)
        return self.to(number, BOOL)

    def index(self, name: str, dimension: int | None) -> Number:
        """Return an id or a size of the work-item."""
        return Number(self.op("index", I64, attribute=(name, dimension)), is_natural=True)

    # -- arithmetic -------------------------------------------------------------------------------

    def unary(self, operation: type, value: Any, node: ast.AST) -> Any:
        """Return a unary operation."""
        if isinstance(value, Constant):
            known = value.value
            is_plain = isinstance(known, int | float) and not isinstance(known, bool)
            is_bits = operation is not ast.Invert or not isinstance(known, float)
            if operation is ast.Not or (is_plain and is_bits):
                return Constant(_PYTHON[operation](known), is_weak=value.is_weak)
        if operation is ast.Not:
            return self.python(Number(self.op("not", BOOL, self.truth(value).op)))
        if isinstance(value, Complex):
            if operation is ast.UAdd:
                return value
            if operation is ast.Invert:
                raise Refusal("a complex number has no bits to invert", node)
            return Complex(
                self.unary(operation, value.real, node), self.unary(operation, value.imag, node)
            )
        number = self.number(value)
        if operation is ast.Invert and number.type.is_float:
            raise Refusal("a float has no bits to invert", node)
        if operation is ast.Invert and number.type.kind == "b":
            return Number(self.op("not", number.type, number.op))
        if number.type.lanes > 1:
            name = "neg" if operation is ast.USub else "pos" if operation is ast.UAdd else "invert"
            ruled(rules.checked_dtype, name, number.type.dtype)
            if operation is ast.UAdd:
                return number
            word = "neg" if operation is ast.USub else "invert"
            return Number(self.op(word, number.type, number.op))
        is_weak = self.is_weak(value)
        wide = self.rules.widened(number.type, is_weak)
        if wide == BOOL:
            raise Refusal(
                f"{SIGNS[operation]} of a Boolean is not available, as in NumPy: write ~ or "
                "int(...)",
                node,
            )
        if operation is ast.UAdd:
            return replace(self.to(number, wide), is_weak=self.rules.is_numpy and is_weak)
        if not number.type.is_integer:
            number = self.to(number, wide)
        # An integer wraps in its own type, and is widened afterwards.
        word = "neg" if operation is ast.USub else "invert"
        result = self.to(Number(self.op(word, number.type, number.op)), wide)
        return replace(result, is_weak=self.rules.is_numpy and is_weak)

    def binary(self, operation: type, a: Any, b: Any, node: ast.AST) -> Any:
        """Return a binary operation; that of Python numbers is one."""
        result = self.of_operands(operation, a, b, node)
        return self.python(result) if self.is_weak(a) and self.is_weak(b) else result

    def of_operands(self, operation: type, a: Any, b: Any, node: ast.AST) -> Any:
        if isinstance(a, Constant) and isinstance(b, Constant):
            folded = self.folded(operation, a, b, node)
            if folded is not None:
                return folded
        if isinstance(a, Tuple) or isinstance(b, Tuple):
            return self.of_tuples(operation, a, b, node)
        if isinstance(a, Complex) or isinstance(b, Complex):
            return self.of_complex(operation, a, b, node)
        first, second = (each if is_number(each) else self.number(each) for each in (a, b))
        kinds = self.type_of(first), self.type_of(second)
        if max(kinds[0].lanes, kinds[1].lanes) > 1:
            return self.of_vectors(operation, first, second, node)
        weak = self.is_weak(first), self.is_weak(second)
        if "f" in (kinds[0].kind, kinds[1].kind) and operation in {**_SHIFTS, **_BITWISE}:
            raise Refusal(
                f"{SIGNS[operation]} works on integers, and an operand is "
                f"{kinds[kinds[1].is_float].name}: convert it with int(...)",
                node,
            )
        if operation in _SHIFTS:
            kind = self.rules.shifted(*kinds, weak)
            self.check_integers(operation, kind, kinds, node)
            return self.made(_SHIFTS[operation], kind, first, second, operation is ast.RShift)
        if operation in _BITWISE:
            kind = self.rules.bitwise(*kinds, weak)
            self.check_integers(operation, kind, kinds, node)
            natural = self.is_natural(first) and self.is_natural(second)
            return self.made(_BITWISE[operation], kind, first, second, natural and kind != BOOL)
        if operation is ast.Div:
            return self.made("div", self.rules.quotient(*kinds, weak), first, second)
        if operation is ast.Pow:
            return self.power(first, second, node)
        word = _ARITHMETIC.get(operation)
        if word is None:
            sign = SIGNS.get(operation, operation.__name__)
            raise Refusal(f"{sign} is not available in a kernel for numbers", node)
        kind = self.rules.arithmetic(*kinds, weak)
        if kind == BOOL:
            return self.of_booleans(word, first, second, node)
        if word in ("floordiv", "mod"):
            return self.quotient(word, kind, first, second, node)
        return self.made(word, kind, first, second, word != "sub")

    def of_booleans(self, word: str, a: Any, b: Any, node: ast.AST) -> Any:
        """Return an operation on Booleans as NumPy computes it."""
        if word == "sub":
            raise Refusal(
                "the difference of Booleans is not available, as in NumPy: write a ^ b, or "
                "int(a) - int(b)",
                node,
            )
        if word in ("add", "mul"):
            return self.made("or" if word == "add" else "and", BOOL, a, b)
        return self.quotient(word, I8, a, b, node)

    def check_integers(
        self, operation: type, kind: Type, kinds: tuple[Type, Type], node: ast.AST
    ) -> None:
        """Refuse an operation on bits of integers that only a float type holds."""
        if kind.is_float:
            raise Refusal(
                f"{kinds[0].name} {SIGNS[operation]} {kinds[1].name} has no type, as in NumPy: "
                "convert one of them, as in np.uint64(k)",
                node,
            )

    def made(self, word: str, kind: Type, a: Any, b: Any, keeps_sign: bool = False) -> Number:
        """Add an operation on two numbers in a type.

        Args:
            word: the name of the op.
            kind: its type.
            a: the first operand.
            b: the second operand.
            keeps_sign: whether the result of natural numbers is natural.
        """
        first, second = self.to(a, kind), self.to(b, kind)
        # A narrow integer wraps around, and may then be negative.
        keeps_sign = keeps_sign and (kind.kind == "u" or kind == I64)
        natural = keeps_sign and self.is_natural(a) and self.is_natural(b)
        relies = self.relies(a, b) if natural else frozenset()
        return Number(self.op(word, kind, first.op, second.op), False, natural, relies)

    def folded(self, operation: type, a: Constant, b: Constant, node: ast.AST) -> Constant | None:
        """Return an operation on constants; ``None`` if a device must compute it."""
        x, y = a.value, b.value
        if not all(isinstance(each, (*NUMBERS, tuple, str)) for each in (x, y)):
            return None
        are_plain = all(type(each) in (int, float, bool) for each in (x, y))
        if are_plain and operation in (ast.LShift, ast.RShift, ast.Pow):
            self.refuse_large(operation, x, y)
            if not _is_folded(operation, x, y):
                return None
        try:
            result = _PYTHON[operation](x, y)
        except (KeyError, ArithmeticError, TypeError, ValueError):
            return None
        if isinstance(result, complex) or (isinstance(result, np.generic) and not are_plain):
            return None
        if type(result) is int and not -(1 << 63) <= result < 1 << 63:
            return None
        written = isinstance(node, ast.BinOp) and all(
            isinstance(each, ast.Constant | ast.BinOp | ast.UnaryOp)
            for each in (node.left, node.right)
        )
        return Constant(result, is_weak=a.is_weak and b.is_weak and written)

    def refuse_large(self, operation: type, x: Any, y: Any) -> None:
        """Refuse a power or shift of integers of the source that certainly exceeds 64 bits."""
        if is_too_large(SIGNS[operation], x, y):
            raise Refusal(
                f"the integer {x}{SIGNS[operation]}{y} does not fit into 64 bits: write a "
                "floating-point number, as in 1e20"
            )

    def of_tuples(self, operation: type, a: Any, b: Any, node: ast.AST) -> Tuple:
        """Return tuples side by side, or one repeated."""
        if operation is ast.Add and isinstance(a, Tuple) and isinstance(b, Tuple):
            return Tuple(a.items + b.items)
        if operation is ast.Mult:
            items, count = (a, b) if isinstance(a, Tuple) else (b, a)
            if isinstance(count, Constant) and type(count.value) is int:
                return Tuple(items.items * count.value)
        sign = SIGNS.get(operation, operation.__name__)
        raise Refusal(
            f"{described(a)} {sign} {described(b)} is not available in a kernel for these types",
            node,
        )

    def quotient(self, word: str, kind: Type, a: Any, b: Any, node: Any) -> Any:
        """Return ``a // b`` or ``a % b``, which round down."""
        kinds = self.type_of(a), self.type_of(b)
        if kind.is_float:
            is_quotient = word == "floordiv"
            function = prelude.float_floordiv if is_quotient else prelude.float_mod
            return self.call(Constant(function), [self.to(a, kind), self.to(b, kind)], {}, node)
        if kind == I64 and U64 in kinds and "i" in (kinds[0].kind, kinds[1].kind):
            signed_first = kinds[0].kind == "i"
            name = "mixed_signed_first" if signed_first else "mixed_signed_second"
            first, second = self.to(a, kinds[0]), self.to(b, kinds[1])
            first = self.to(first, I64 if signed_first else U64)
            second = self.to(second, U64 if signed_first else I64)
            pair = self.call(Constant(getattr(prelude, name)), [first, second], {}, node)
            return pair.items[word == "mod"]
        natural = self.is_natural(a) and self.is_natural(b)
        sure = natural and not self.relies(a, b) and self.is_sure(a) and self.is_sure(b)
        first, second = self.to(a, kind), self.to(b, kind)
        marks = frozenset({"nonnegative"}) if sure else frozenset()
        op = self.op(word, kind, first.op, second.op, marks=marks)
        return Number(op, False, natural, self.relies(a, b) if natural else frozenset())

    def is_sure(self, value: Any) -> bool:
        """Return whether a natural number is not negative even if a sum overflows."""
        if isinstance(value, Constant):
            return True
        return value.op.name in ("index", "constant") or value.type.kind == "u"

    def power(self, a: Any, b: Any, node: ast.AST) -> Any:
        """Return ``a ** b``; an integer to a negative integer is a float, as in Python."""
        base, exponent = self.type_of(a), self.type_of(b)
        weak = self.is_weak(a), self.is_weak(b)
        kind = self.rules.power(base, exponent, weak)
        known = b.value if isinstance(b, Constant) and not exponent.is_float else None
        if exponent.is_float:
            first, second = self.to(a, kind).op, self.to(b, kind).op
            if isinstance(b, Constant) and abs(b.value) in (0.5, 1.5):
                return Number(self.power_by_root(first, kind, float(b.value)))
            return Number(self.op("math", kind, first, second, attribute="pow"))
        if not kind.is_float and known is not None and known < 0:
            if self.rules.is_numpy and not weak[0]:
                raise Refusal(
                    "integers have no negative powers, as in NumPy: write float(x) ** k", node
                )
            kind = F64
        if known is not None and 0 <= known <= _MAX_PRODUCT:
            return self.power_by_constant(self.to(a, kind), int(known))
        if kind.is_float:
            arguments = [self.to(a, kind), self.to(b, promotion.WIDE.widened(exponent))]
            return self.call(Constant(prelude.float_power), arguments, {}, node)
        if all(weak) or not self.rules.is_numpy:
            self.check_exponent(b)
        wide = promotion.WIDE.widened(exponent)
        whole = kind if kind.bits == 64 else I64
        power = Number(self.op("pow", whole, self.to(a, whole).op, self.to(b, wide).op))
        return self.to(power, kind)

    def power_by_root(self, base: Op, kind: Type, exponent: float) -> Op:
        """Return a power to 0.5, 1.5, -0.5 or -1.5, with at most 2 ulp more of error than pow.

        Unlike a root, powers of -inf are those of inf, and those of -0.0 are those of 0.0.
        """
        root = self.op("math", kind, base, attribute="sqrt")
        root = self.op("add", kind, root, self.constant(0, kind))
        is_least = self.op("eq", BOOL, base, self.constant(-np.inf, kind))
        power = self.op("select", kind, is_least, self.constant(np.inf, kind), root)
        if abs(exponent) > 1:
            size = self.op("math", kind, base, attribute="fabs")
            power = self.op("mul", kind, size, power)
        return power if exponent > 0 else self.op("div", kind, self.constant(1, kind), power)

    def check_exponent(self, exponent: Any) -> None:
        """Refuse an exponent whose sign decides whether Python's power is an integer or a float."""
        if not isinstance(exponent, Number) or self.is_natural(exponent):
            return
        if exponent.op.name in ("neg", "sub") or exponent.op in self.python_integers:
            raise Refusal(
                "the exponent of this power of integers may be negative, and the power then a "
                "float: write float(x) ** k for a float, or x ** max(k, 0) for an integer"
            )

    def python_integer(self, value: Any) -> Number:
        """Return a number as a Python integer, which is an int64."""
        number = self.to(value, I64)
        if not self.is_natural(number):
            op = self.op("convert", I64, number.op)
            self.python_integers.add(op)
            number = Number(op)
        return self.python(number)

    def power_by_constant(self, base: Number, exponent: int) -> Number:
        """Return a product by repeated squares, in the order of the loop over bits."""
        product, factor = None, base
        while exponent:
            if exponent & 1:
                product = (
                    factor if product is None else self.made("mul", base.type, product, factor)
                )
            exponent >>= 1
            if exponent:
                factor = self.made("mul", base.type, factor, factor)
        return self.to(Constant(1), base.type) if product is None else product

    # -- comparison -------------------------------------------------------------------------------

    def compare(self, order: type, a: Any, b: Any, node: ast.AST) -> Any:
        """Return a comparison; that of Python numbers is one."""
        result = self.compared(order, a, b, node)
        return self.python(result) if self.is_weak(a) and self.is_weak(b) else result

    def compared(self, order: type, a: Any, b: Any, node: ast.AST) -> Any:
        if order in (ast.Is, ast.IsNot):
            if isinstance(a, Optional) and b == NONE:
                is_none = a.is_none
                return is_none if order is ast.Is else self.unary(ast.Not, is_none, node)
            same = isinstance(a, Constant) and isinstance(b, Constant) and a.value is b.value
            return Constant(same == (order is ast.Is))
        if isinstance(a, Text) or isinstance(b, Text):
            raise Refusal(NO_STRINGS, node)
        if isinstance(a, Constant) and isinstance(b, Constant):
            return self.compared_constants(order, a, b, node)
        if order in (ast.In, ast.NotIn):
            return self.contained(order, a, b, node)
        word = _ORDERS[order]
        if isinstance(a, Tuple) and isinstance(b, Tuple):
            return self.compared_tuples(order, a, b, node)
        if isinstance(a, Array) or isinstance(b, Array):
            raise Refusal(
                "comparing whole arrays is not available in a kernel, which works on elements: "
                "compare x[i], or make the mask by array code on the host",
                node,
            )
        if isinstance(a, Complex) or isinstance(b, Complex):
            if word not in ("eq", "ne"):
                raise Refusal("complex numbers have no order", node)
            first, second = self.complex(a), self.complex(b)
            differ = self.either(
                self.compare(ast.NotEq, first.real, second.real, node),
                self.compare(ast.NotEq, first.imag, second.imag, node),
            )
            return differ if word == "ne" else self.unary(ast.Not, differ, node)
        others = [each for each in (a, b) if not is_number(each)]
        if word in ("eq", "ne") and any(isinstance(each, Constant) for each in others):
            return Constant(word == "ne")  # None, a string or a dtype, and something else
        return self.compared_numbers(word, a, b)

    def compared_constants(self, order: type, a: Constant, b: Constant, node: ast.AST) -> Constant:
        try:
            return Constant(bool(_PYTHON[order](a.value, b.value)))
        except TypeError:
            raise Refusal(
                f"{described(a)} and {described(b)} have no order, or are no containers", node
            ) from None

    def compared_numbers(self, word: str, a: Any, b: Any) -> Number:
        kinds = self.type_of(a), self.type_of(b)
        if max(kinds[0].lanes, kinds[1].lanes) > 1:
            return self.compared_vectors(word, a, b)
        weak = self.is_weak(a), self.is_weak(b)
        if self.rules.is_numpy and "f" in (kinds[0].kind, kinds[1].kind):
            kind = self.rules.arithmetic(*kinds, weak)
        else:
            # Integers are compared exactly; one that is computed may be negative.
            if self.rules.is_numpy:
                weak = _is_literal(a), _is_literal(b)
            kind = promotion.WIDE.arithmetic(*kinds, weak)
        if kind == I64 and U64 in kinds and "i" in (kinds[0].kind, kinds[1].kind):
            return self.compare_mixed(word, a, b, kinds[0].kind == "i")
        first, second = self.to(a, kind), self.to(b, kind)
        return Number(self.op(word, BOOL, first.op, second.op))

    def compared_vectors(self, word: str, a: Any, b: Any) -> Number:
        kind: Type | None = ruled(promotion.vectors, word, self.type_of(a), self.type_of(b))
        if kind is not None:
            first, second = self.to(a, kind), self.to(b, kind)
            return Number(self.op(word, kind.flag, first.op, second.op))
        # Integers that no type can hold: each pair by itself.
        count = max(self.type_of(a).lanes, self.type_of(b).lanes)
        lanes = [
            self.compared_numbers(word, *(self.lane_or_number(each, lane) for each in (a, b))).op
            for lane in range(count)
        ]
        return Number(self.op("pack", Type("b", 1, count), *lanes))

    def lane_or_number(self, value: Any, lane: int) -> Any:
        return self.lane(value, lane) if self.type_of(value).lanes > 1 else value

    def compare_mixed(self, word: str, a: Any, b: Any, is_first: bool) -> Number:
        """Compare a uint64 with a signed integer: negative ones are less than every uint64."""
        signed = self.to(a if is_first else b, I64)
        negative = self.op("lt", BOOL, signed.op, self.constant(0, I64))
        first, second = (signed, b) if is_first else (a, signed)
        result = self.op(word, BOOL, self.to(first, U64).op, self.to(second, U64).op)
        answer = word == "ne" or (word in ("lt", "le") if is_first else word in ("gt", "ge"))
        return Number(self.op("select", BOOL, negative, self.constant(answer, BOOL), result))

    def compared_tuples(self, order: type, a: Tuple, b: Tuple, node: ast.AST) -> Any:
        """Compare tuples, item by item."""
        if order in (ast.Eq, ast.NotEq):
            if len(a.items) != len(b.items):
                return Constant(order is ast.NotEq)
            differ: Any = Constant(False)
            for one, other in zip(a.items, b.items, strict=True):
                differ = self.either(differ, self.compare(ast.NotEq, one, other, node))
            return differ if order is ast.NotEq else self.unary(ast.Not, differ, node)
        result = self.compare(order, Constant(len(a.items)), Constant(len(b.items)), node)
        strict = ast.Lt if order in (ast.Lt, ast.LtE) else ast.Gt
        for one, other in reversed(list(zip(a.items, b.items, strict=False))):
            before = self.compare(strict, one, other, node)
            after = self.compare(ast.Eq, one, other, node)
            both = self.op("and", BOOL, self.truth(after).op, self.truth(result).op)
            result = self.either(before, Number(both))
        return result

    def contained(self, order: type, a: Any, b: Any, node: ast.AST) -> Any:
        """Return ``a in b``."""
        if isinstance(b, Array):
            raise Refusal(
                f"an operand of `in` is {described(b)}, {NOT_AN_ELEMENT}",
                node,
            )
        result: Any = Constant(False)
        if isinstance(b, Range):
            result = self.in_range(a, b, node)
        else:
            for item in self.items_of(b, node):
                result = self.either(result, self.compare(ast.Eq, a, item, node))
        return result if order is ast.In else self.unary(ast.Not, result, node)

    def in_range(self, a: Any, b: Range, node: ast.AST) -> Any:
        """Return whether a number is one of a range with a constant step."""
        if not isinstance(b.step, Constant) or b.step.value == 0:
            raise Refusal("`in` takes a range with a constant step that is not 0", node)
        is_up = b.step.value > 0
        inside = [
            self.compare(ast.GtE if is_up else ast.LtE, a, b.first, node),
            self.compare(ast.Lt if is_up else ast.Gt, a, b.stop, node),
        ]
        if abs(b.step.value) != 1:
            distance = self.binary(ast.Sub, a, b.first, node)
            rest = self.binary(ast.Mod, distance, b.step, node)
            inside.append(self.compare(ast.Eq, rest, Constant(0), node))
        result = self.truth(inside[0])
        for part in inside[1:]:
            result = self.made("and", BOOL, result, self.truth(part))
        return result

    def either(self, a: Any, b: Any) -> Any:
        """Return whether one of two conditions holds."""
        if isinstance(a, Constant):
            return Constant(True) if a.value else b
        if isinstance(b, Constant):
            return Constant(True) if b.value else a
        return Number(self.op("or", BOOL, self.truth(a).op, self.truth(b).op))

    def of_range(self, over: Range) -> Type:
        """Return the type of the numbers of a range."""
        kinds = [self.type_of(each) for each in (over.first, over.stop, over.step)]
        for kind in kinds:
            if kind.is_float:
                raise Refusal(
                    f"the bounds of a range are integers, and one is {kind.name}: convert it with "
                    "int(...)"
                )
        is_unsigned = not self.rules.is_numpy and all(kind.kind == "u" for kind in kinds)
        return U64 if is_unsigned else I64

    # -- vectors and complex numbers --------------------------------------------------------------

    def lane(self, value: Number, position: int) -> Number:
        """Return an element of a vector."""
        if value.op.name == "pack":
            return Number(value.op.operands[position])
        return Number(self.op("extract", value.type.scalar, value.op, attribute=position))

    def of_vectors(self, operation: type, a: Any, b: Any, node: ast.AST) -> Number:
        """Return a binary operation on a vector and a vector or a number."""
        name = _VECTORS.get(operation)
        if name is None:
            sign = SIGNS.get(operation, operation.__name__)
            raise Refusal(f"{sign} is not available in a kernel for vectors", node)
        kind = self.common_vector(self.type_of(a), self.type_of(b), name)
        word = {**_ARITHMETIC, **_BITWISE, **_SHIFTS, ast.Div: "div"}.get(operation)
        if word is not None and not (kind.is_float and word in ("floordiv", "mod")):
            return self.made(word, kind, a, b)
        first, second = self.to(a, kind), self.to(b, kind)
        lanes = [
            self.binary(operation, self.lane(first, lane), self.lane(second, lane), node)
            for lane in range(kind.lanes)
        ]
        return Number(self.op("pack", kind, *(self.to(each, kind.scalar).op for each in lanes)))

    def complex(self, value: Any) -> Complex:
        """Return a number as a complex number."""
        if isinstance(value, Complex):
            return value
        kind = self.rules.mathematics(self.type_of(value), weak=(self.is_weak(value), False))
        parts = self.to(value, kind), self.to(Constant(0.0), kind)
        return Complex(*map(self.python, parts)) if self.is_weak(value) else Complex(*parts)

    def of_complex(self, operation: type, a: Any, b: Any, node: ast.AST) -> Any:
        """Return a binary operation on complex numbers."""
        x, y = self.complex(a), self.complex(b)
        kind = self.rules.joined(x.real.type, y.real.type, (x.real.is_weak, y.real.is_weak))
        are_weak = x.real.is_weak and y.real.is_weak
        x, y = (Complex(self.to(z.real, kind), self.to(z.imag, kind)) for z in (x, y))
        function = _COMPLEX.get(operation)
        if operation is ast.Pow:
            function = prelude.complex_power
        if function is None:
            sign = SIGNS.get(operation, operation.__name__)
            raise Refusal(f"{sign} is not available in a kernel for complex numbers", node)
        parts = [x.real, x.imag, y.real, y.imag]
        result = self.call(Constant(function), parts, {}, node)
        return Complex(*(self.python(result) if are_weak else result).items)

    # -- what other parts of the front end provide -------------------------------------------------

    def call(self, called: Any, arguments: list[Any], named: dict[str, Any], node: Any) -> Any:
        raise NotImplementedError

    def items_of(self, value: Any, node: ast.AST) -> list[Any]:
        raise NotImplementedError


def _is_literal(value: Any) -> bool:
    """Return whether a number is known and not negative."""
    return isinstance(value, Constant) and bool(value.value >= 0)


def _is_folded(operation: type, x: Any, y: Any) -> bool:
    """Return whether a shift or a power of constants is computed as Python does."""
    if 0 <= y < 64:
        return True
    if operation is not ast.Pow or type(y) is not int or abs(y) >= 1024:
        return False
    return type(x) is float or (type(x) is int and y < 0 and x != 0)


def ruled(rule: Callable[..., Any], *arguments: Any) -> Any:
    """Apply a rule of types; its errors refuse the function."""
    try:
        return rule(*arguments)
    except TypeError as error:
        raise Refusal(str(error)) from None


def pointer_type(op: Op) -> Pointer:
    """Return the type of an address."""
    assert isinstance(op.type, Pointer)
    return op.type
