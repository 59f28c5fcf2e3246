"""Write a program of the intermediate representation as LLVM IR, for all back ends.

The module calls device functions by their names in :mod:`dparray._compiler.abi`. It is not
optimized: a back end runs LLVM's passes.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import Any

from dparray._compiler import abi
from dparray._ir.facts import counter, follows_rows, index_arithmetic
from dparray._ir.instructions import SCOPES, Function, Op, walk
from dparray._ir.types import BOOL, F16, F32, F64, I8, I32, I64, LOCAL, Pointer, Type
from dparray.kernel_api import MemoryOrder

_RETURN, _STOP = "  ret void", "  ret i32"
_CONSTANT_SPACE = 2  # OpenCL's memory of strings
# A device function reads and writes no memory, or work-items call it together.
_PURE, _TOGETHER, _OPAQUE = "memory(none)", "convergent", "speculatable memory(none)"
_FLOATS = {16: "half", 32: "float", 64: "double"}
_CODES = {
    "bool": "b", "i8": "a", "u8": "h", "i16": "s", "u16": "t", "i32": "i", "u32": "j", "i64": "l",
    "u64": "m", "f16": "Dh", "f32": "f", "f64": "d",
}  # fmt: skip
_ORDERS = ("lt", "le", "gt", "ge", "eq", "ne")
_ARITHMETIC = {
    "add": ("add", "fadd"),
    "sub": ("sub", "fsub"),
    "mul": ("mul", "fmul"),
    "div": ("", "fdiv"),
    "and": ("and", ""),
    "or": ("or", ""),
    "xor": ("xor", ""),
}
# The end of the name of an atomic update, for signed integers, unsigned integers and floats.
_UPDATES = {
    "fetch_add": ("IAdd", "IAdd", "FAddEXT"),
    "fetch_sub": ("ISub", "ISub", ""),  # for floats, the negated value is added
    "fetch_min": ("SMin", "UMin", "FMinEXT"),
    "fetch_max": ("SMax", "UMax", "FMaxEXT"),
    "fetch_and": ("And", "And", ""),
    "fetch_or": ("Or", "Or", ""),
    "fetch_xor": ("Xor", "Xor", ""),
}
# The other atomic functions, which move floats as integers: all drivers support these.
_MOVES = {
    "load": "Load",
    "store": "Store",
    "exchange": "Exchange",
    "compare_exchange": "CompareExchange",
}
_GROUP_STEPS = ("reduce", "inclusive_scan", "exclusive_scan")
_GROUP_OPERATIONS = {
    "add": ("IAdd", "IAdd", "FAdd"),
    "min": ("SMin", "UMin", "FMin"),
    "max": ("SMax", "UMax", "FMax"),
}
_CONVERSION = re.compile(r"%(?P<flags>[^a-zA-Z%]*)(?P<letter>[a-zA-Z%])")

# The power of two integers modulo 2**64.
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


def module(function: Function) -> tuple[str, str]:
    """Return the entry point of a program, and its module as LLVM IR that is not optimized."""
    entry = abi.entry_name(function.name)
    return entry, _Emitter().module(entry, function)


def spelled(kind: Type | Pointer) -> str:
    """Return LLVM's name of the type of a value."""
    if isinstance(kind, Pointer):
        return f"ptr addrspace({kind.space})" if kind.space else "ptr"
    name = _FLOATS[kind.bits] if kind.is_float else f"i{kind.bits}"
    return name if kind.lanes == 1 else f"<{kind.lanes} x {name}>"


def spelled_constant(number: Any, kind: Type) -> str:
    """Return LLVM's spelling of a number, in each lane of a vector."""
    if kind.lanes > 1:
        lane = f"{spelled(kind.scalar)} {spelled_constant(number, kind.scalar)}"
        return f"<{', '.join([lane] * kind.lanes)}>"
    if kind.kind == "b":
        return "true" if number else "false"
    if kind == F16:
        return "0xH" + struct.pack(">e", number).hex().upper()
    if kind.is_float:
        return abi.float_literal(number, "f" if kind.bits == 32 else "d")
    wrapped = int(number) % (1 << kind.bits)
    is_above = kind.kind == "i" and wrapped >> (kind.bits - 1)
    return str(wrapped - (1 << kind.bits) if is_above else wrapped)


def _in_memory(kind: Type) -> str:
    """Return LLVM's name of the type of an element in memory: a Boolean takes a byte."""
    return spelled(kind._replace(bits=8) if kind.kind == "b" else kind)


def _code(kind: Type) -> str:
    """Return the code of a type in the names of device functions."""
    code = _CODES[str(kind.scalar)]
    return code if kind.lanes == 1 else f"Dv{kind.lanes}_{code}"


def _by_kind(kind: Type) -> int:
    """Return the column of a table that has signed integers, unsigned integers and floats."""
    return "iuf".index(kind.kind)


class _Emitter:
    """Writes one kernel.

    Attributes:
        lines: of the body so far.
        allocated: the private memory, by name, and its LLVM types.
        functions: of the parts of parallel loops, and of procedures.
        in_part: whether the function that is being written returns why it ended.
        variables: of the module: local memory and strings.
        declared: the functions that are called, in the order of their first calls.
        values: the spelling of the value of each op, by identity.
        block: the label of the block that is being written.
        ways: the blocks that leave or repeat control flow, with the values that they give, by the
            identity of the construct and the kind of jump.
        labels: the blocks to which jumps go, by the same.
        flags: of the sums that count a loop, by identity: no overflow.
        indices: the sums and products that are used as indices alone, by identity.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.allocated: dict[str, str] = {}
        self.functions: list[str] = []
        self.in_part = False
        self.variables: list[str] = []
        self.declared: dict[str, None] = {}
        self.values: dict[int, str] = {}
        self.block = "entry"
        self.ways: dict[tuple[int, str], list[tuple[str, list[str]]]] = {}
        self.labels: dict[tuple[int, str], str] = {}
        self.flags: dict[int, str] = {}
        self.indices: set[int] = set()
        self.count = 0

    def module(self, entry: str, function: Function) -> str:
        parameters = []
        for number, op in enumerate(function.parameters):
            part = op.attribute
            # Back ends know the sizes of the range by these names, which no other value has.
            name = f"%{part.argument if part.argument.isascii() else number}.{part.part}"
            name = f"%extent{part.dimension}" if part.part == "extent" else f"{name}.{number}"
            self.values[id(op)] = name
            assert op.type is not None
            parameters.append(f"{spelled(op.type)} {name}")
        for number, each in enumerate(function.procedures):
            self.procedure(number, each)
        self.indices = index_arithmetic(function)
        self.body(function.body)
        starts, ends = (self.lifetimes(which) for which in ("start", "end"))
        allocated = [f"  {name} = alloca {storage}" for name, storage in self.allocated.items()]
        lines = [*allocated, *starts]
        for line in self.lines:
            lines += [*ends, line] if line == _RETURN else [line]
        body = "\n".join(lines)
        hint, more = (abi.IN_ORDER, abi.IN_ORDER_VALUE) if follows_rows(function) else ("", "")
        head = f"define spir_kernel void @{entry}({', '.join(parameters)}){hint} {{\nentry:\n"
        module = [*self.variables, *self.declared, *self.functions, f"{head}{body}\n}}\n{more}"]
        return "\n".join(module)

    def procedure(self, number: int, function: Function) -> None:
        """Write a procedure as a function that returns the number of an exception, or 0."""
        parameters = []
        for place, op in enumerate(function.parameters):
            self.values[id(op)] = name = f"%argument.{place}"
            assert op.type is not None
            parameters.append(f"{spelled(op.type)} {name}")
        self.indices = index_arithmetic(function)
        self.in_part = True
        self.declared[f"declare i32 @{abi.HAS_STACK}()"] = None
        has_stack = self.emit(f"call i32 @{abi.HAS_STACK}()")
        self.end_if(self.emit(f"icmp eq i32 {has_stack}, 0"), str(abi.NO_STACK))
        self.body(function.body)
        memory = [f"  {each} = alloca {storage}" for each, storage in self.allocated.items()]
        head = f"define internal i32 {_procedure(number)}({', '.join(parameters)}) {{\nentry:"
        self.functions.append("\n".join([head, *memory, *self.lines, "}", ""]))
        self.lines, self.allocated, self.block, self.in_part = [], {}, "entry", False

    def write_call(self, op: Op) -> None:
        """Write the call of a procedure; the function ends if that has ended by an exception."""
        arguments = ", ".join(" ".join(self.typed(each)) for each in op.operands)
        status = self.emit(f"call i32 {_procedure(op.attribute)}({arguments})")
        self.end_if(self.emit(f"icmp ne i32 {status}, 0"), status)

    def lifetimes(self, which: str) -> list[str]:
        """Return lines that mark the start or the end of the lifetime of private memory.

        Without these marks, Intel's CPU driver reads values of other work-items.
        """
        if self.allocated:
            self.declared[f"declare void @llvm.lifetime.{which}.p0(ptr)"] = None
        return [f"  call void @llvm.lifetime.{which}.p0(ptr {name})" for name in self.allocated]

    # -- lines ------------------------------------------------------------------------------------

    def label(self, prefix: str = "v") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def emit(self, instruction: str) -> str:
        """Write an instruction, and return the name of its result."""
        name = f"%{self.label()}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def do(self, instruction: str) -> None:
        self.lines.append(f"  {instruction}")

    def begin(self, label: str) -> None:
        """Begin a block of instructions."""
        self.lines.append(f"{label}:")
        self.block = label

    def text(self, op: Op) -> str:
        """Return the spelling of the value of an op."""
        if op.name == "constant":
            return spelled_constant(op.attribute, op.type)  # type: ignore[arg-type]
        return self.values[id(op)]

    def typed(self, op: Op) -> tuple[str, str]:
        """Return the spelling of a type and a value, an argument of a call."""
        assert op.type is not None
        return spelled(op.type), self.text(op)

    def call(
        self, name: str, result: str, arguments: Sequence[tuple[str, str]], attribute: str = ""
    ) -> str:
        """Return the instruction that calls a device function."""
        kinds = ", ".join(kind for kind, _ in arguments)
        self.declared[f"declare spir_func {result} @{name}({kinds}) nounwind {attribute}"] = None
        values = ", ".join(f"{kind} {value}" for kind, value in arguments)
        attribute = _TOGETHER if attribute == _TOGETHER else ""
        return f"call spir_func {result} @{name}({values}) {attribute}".rstrip()

    # -- control flow -----------------------------------------------------------------------------

    def body(self, body: Sequence[Op]) -> None:
        for op in body:
            write = getattr(self, f"write_{op.name}", None) or self.write_value
            write(op)

    def write_if(self, op: Op) -> None:
        then, other, end = self.label("then"), self.label("else"), self.label("end")
        self.labels[id(op), "leave"] = end
        self.do(f"br i1 {self.text(op.operands[0])}, label %{then}, label %{other}")
        for label, body in zip((then, other), op.bodies, strict=True):
            self.begin(label)
            self.body(body)
        self.join(op)

    def write_block(self, op: Op) -> None:
        self.labels[id(op), "leave"] = self.label("end")
        self.body(op.bodies[0])
        self.join(op)

    def write_loop(self, op: Op) -> None:
        head, end = self.label("loop"), self.label("end")
        self.labels[id(op), "repeat"], self.labels[id(op), "leave"] = head, end
        before = (self.block, [self.text(operand) for operand in op.operands])
        self.do(f"br label %{head}")
        self.begin(head)
        start = len(self.lines)
        for carried in op.carried:
            self.values[id(carried)] = f"%{self.label('carried')}"
        self.note_counter(op)
        self.body(op.bodies[0])
        ways = [before, *self.ways.get((id(op), "repeat"), [])]
        self.lines[start:start] = self.joined(op.carried, ways)
        self.join(op)

    def write_parallel(self, op: Op) -> None:
        """Write the body as a function of a part, which the host's threads call.

        It finds the values from around it in a record on the caller's stack. A call that a signal
        has ended returns a number; the exception is Python's.
        """
        inner = list(walk(op.bodies[0]))
        own = {id(each) for one in (op, *inner) for each in (one, *one.results, *one.carried)}
        operands = (each for one in inner for each in one.operands if each.name != "constant")
        used = list({id(each): each for each in operands if id(each) not in own}.values())
        fields = [self.typed(each) for each in used]
        record = f"{{ {', '.join(kind for kind, _ in fields)} }}"
        name, end = f"@dparray.{self.label('part')}", self.label("end")
        outside = self.lines, self.allocated, self.block, dict(self.values), self.in_part
        self.lines, self.allocated, self.block, self.in_part = [], {}, "entry", True
        for number, each in enumerate(used):
            place = self.emit(f"getelementptr {record}, ptr %data, i64 0, i32 {number}")
            kind = fields[number][0]
            self.values[id(each)] = self.emit(f"load {kind}, ptr {place}")
        self.declared["declare void @llvm.assume(i1)"] = None
        for each, word in zip(op.carried, ("number", "first", "last"), strict=True):
            self.values[id(each)] = f"%{word}"
            is_small = self.emit(f"icmp ult i64 %{word}, {1 << 48}")
            self.do(f"call void @llvm.assume(i1 {is_small})")
        self.labels[id(op), "leave"] = end
        self.body(op.bodies[0])
        self.begin(end)
        starts, ends = (self.lifetimes(which) for which in ("start", "end"))
        memory = [f"  {each} = alloca {storage}" for each, storage in self.allocated.items()]
        self.functions.append(
            f"define internal i32 {name}(ptr noalias readonly %data, ptr %error, i64 %number, "
            "i64 %first, i64 %last) {\nentry:\n"
            + "\n".join([*memory, *starts, *self.lines, *ends, "  ret i32 0", "}", ""])
        )
        self.lines, self.allocated, self.block, self.values, self.in_part = outside
        data, error = f"%{self.label('record')}", f"%{self.label('error')}"
        self.allocated |= {data: record if fields else "i64", error: "ptr"}
        for number, (kind, text) in enumerate(fields):
            place = self.emit(f"getelementptr {record}, ptr {data}, i64 0, i32 {number}")
            self.do(f"store {kind} {text}, ptr {place}")
        self.declared[f"declare i32 @{abi.SHARE_PARTS}(ptr, ptr, i64, i64, ptr)"] = None
        total, parts = map(self.text, op.operands)
        status = self.emit(
            f"call i32 @{abi.SHARE_PARTS}(ptr {name}, ptr {data}, i64 {total}, i64 {parts}, "
            f"ptr {error})"
        )
        self.end_if(self.emit(f"icmp ne i32 {status}, 0"), status)

    def note_counter(self, loop: Op) -> None:
        """Mark the sum that counts a loop: it does not overflow before the loop ends."""
        found = counter(loop)
        if found is None or found.order != "lt" or found.step.name != "constant":
            return
        kind = found.carried.type
        assert isinstance(kind, Type)
        number = next(n for n, op in enumerate(loop.carried) if op is found.carried)
        ways = (op for op in walk(loop.bodies[0]) if op.name == "repeat" and op.attribute is loop)
        again = next(ways)
        if kind.is_integer and found.step.attribute > 0:
            self.flags[id(again.operands[number])] = " nsw" if kind.kind == "i" else " nuw"

    def join(self, op: Op) -> None:
        """Begin the block after control flow, in which its results are joined."""
        ways = self.ways.get((id(op), "leave"), [])
        if not ways:
            return  # No jump comes here, and no op follows.
        self.begin(self.labels[id(op), "leave"])
        for result in op.results:
            self.values[id(result)] = f"%{self.label('joined')}"
        self.lines += self.joined(op.results, ways)

    def joined(self, ops: Sequence[Op], ways: Sequence[tuple[str, list[str]]]) -> list[str]:
        """Return the lines that choose values by the block from which a jump came."""
        lines = []
        for number, op in enumerate(ops):
            assert op.type is not None
            pairs = ", ".join(f"[ {values[number]}, %{block} ]" for block, values in ways)
            lines.append(f"  {self.values[id(op)]} = phi {spelled(op.type)} {pairs}")
        return lines

    def write_leave(self, op: Op) -> None:
        key = id(op.attribute), op.name
        values = [self.text(operand) for operand in op.operands]
        self.ways.setdefault(key, []).append((self.block, values))
        self.do(f"br label %{self.labels[key]}")

    write_repeat = write_leave

    def write_return(self, op: Op) -> None:
        self.lines.append(f"{_STOP} 0" if self.in_part else _RETURN)

    # -- values -----------------------------------------------------------------------------------

    def write_value(self, op: Op) -> None:
        kind = op.operands[0].type
        assert isinstance(kind, Type)
        texts = [self.text(operand) for operand in op.operands]
        name = f"{op.name}_value"
        if op.name in _ARITHMETIC:
            value = self.arithmetic(op, kind, *texts)
        elif op.name in _ORDERS:
            value = self.compared(op.name, kind, *texts)
        else:
            value = getattr(self, name)(op, kind, *texts)
        self.values[id(op)] = value

    def arithmetic(self, op: Op, kind: Type, a: str, b: str) -> str:
        flag = " reassoc nsz" if "reordered" in op.marks else self.flags.get(id(op), "")
        if flag == " reassoc nsz" and not kind.is_float:
            flag = ""
        if not flag and op.type == I64 and op.name in ("add", "sub", "mul"):
            flag = " nsw" * (id(op) in self.indices)
        return self.emit(f"{_ARITHMETIC[op.name][kind.is_float]}{flag} {spelled(kind)} {a}, {b}")

    def compared(self, order: str, kind: Type, a: str, b: str) -> str:
        if kind.is_float:  # Only "not equal" is true of a NaN.
            word = "fcmp " + ("une" if order == "ne" else f"o{order}")
        elif order in ("eq", "ne"):
            word = f"icmp {order}"
        else:
            word = f"icmp {'s' if kind.kind == 'i' else 'u'}{order}"
        return self.emit(f"{word} {spelled(kind)} {a}, {b}")

    def selected(self, flag: str, kind: Type, a: str, b: str) -> str:
        """Choose between two values of a type, in each lane."""
        llvm = spelled(kind)
        return self.emit(f"select {spelled(kind.flag)} {flag}, {llvm} {a}, {llvm} {b}")

    def neg_value(self, op: Op, kind: Type, a: str) -> str:
        if kind.is_float:
            return self.emit(f"fneg {spelled(kind)} {a}")
        return self.emit(f"sub {spelled(kind)} {spelled_constant(0, kind)}, {a}")

    def not_value(self, op: Op, kind: Type, a: str) -> str:
        ones = spelled_constant(True if kind.kind == "b" else -1, kind)
        return self.emit(f"xor {spelled(kind)} {a}, {ones}")

    invert_value = not_value

    def min_value(self, op: Op, kind: Type, a: str, b: str) -> str:
        return self.selected(self.compared("lt", kind, a, b), kind, a, b)

    def max_value(self, op: Op, kind: Type, a: str, b: str) -> str:
        return self.selected(self.compared("gt", kind, a, b), kind, a, b)

    def select_value(self, op: Op, kind: Type, flag: str, a: str, b: str) -> str:
        condition, first = op.operands[0].type, op.operands[1].type
        assert condition is not None
        assert first is not None
        llvm = spelled(first)
        return self.emit(f"select {spelled(condition)} {flag}, {llvm} {a}, {llvm} {b}")

    def shl_value(self, op: Op, kind: Type, a: str, amount: str) -> str:
        none = spelled_constant(0, kind)
        fits = self.fits(op, kind, amount)
        word = "shl" if op.name == "shl" else "lshr"
        if fits == "true":
            return self.emit(f"{word} {spelled(kind)} {a}, {amount}")
        amount = self.selected(fits, kind, amount, none)
        shifted = self.emit(f"{word} {spelled(kind)} {a}, {amount}")
        return self.selected(fits, kind, shifted, none)

    def shr_value(self, op: Op, kind: Type, a: str, amount: str) -> str:
        if kind.kind == "u":
            return self.shl_value(op, kind, a, amount)
        fits = self.fits(op, kind, amount)
        if fits != "true":
            amount = self.selected(fits, kind, amount, spelled_constant(kind.bits - 1, kind))
        return self.emit(f"ashr {spelled(kind)} {a}, {amount}")

    def fits(self, op: Op, kind: Type, amount: str) -> str:
        """Return whether the amount of a shift is within the width."""
        written = op.operands[1]
        if written.name == "constant" and 0 <= written.attribute < kind.bits:
            return "true"
        last = spelled_constant(kind.bits - 1, kind)
        return self.emit(f"icmp ule {spelled(kind)} {amount}, {last}")

    def floordiv_value(self, op: Op, kind: Type, a: str, b: str) -> str:
        if kind.kind == "u" or "nonnegative" in op.marks:
            return self.unsigned_quotient(op, kind, a, b)
        llvm, none = spelled(kind), spelled_constant(0, kind)
        by_zero = self.emit(f"icmp eq {llvm} {b}, {none}")
        by_minus = self.emit(f"icmp eq {llvm} {b}, {spelled_constant(-1, kind)}")
        flags = spelled(kind.flag)
        special = self.emit(f"or {flags} {by_zero}, {by_minus}")
        safe = self.selected(special, kind, spelled_constant(1, kind), b)
        rest = self.emit(f"srem {llvm} {a}, {safe}")
        has_rest = self.emit(f"icmp ne {llvm} {rest}, {none}")
        signs = self.emit(f"xor {llvm} {rest}, {safe}")
        differ = self.emit(f"icmp slt {llvm} {signs}, {none}")
        below = self.emit(f"and {flags} {has_rest}, {differ}")
        if op.name == "mod":
            return self.selected(below, kind, self.emit(f"add {llvm} {rest}, {safe}"), rest)
        quotient = self.emit(f"sdiv {llvm} {a}, {safe}")
        less = self.emit(f"zext {flags} {below} to {llvm}")
        quotient = self.emit(f"sub {llvm} {quotient}, {less}")
        negative = self.emit(f"sub {llvm} {none}, {a}")
        quotient = self.selected(by_minus, kind, negative, quotient)
        return self.selected(by_zero, kind, none, quotient)

    mod_value = floordiv_value

    def unsigned_quotient(self, op: Op, kind: Type, a: str, b: str) -> str:
        llvm, none = spelled(kind), spelled_constant(0, kind)
        word = "udiv" if op.name == "floordiv" else "urem"
        divisor = op.operands[1]
        if divisor.name == "constant" and divisor.attribute > 0:
            return self.emit(f"{word} {llvm} {a}, {b}")
        by_zero = self.emit(f"icmp eq {llvm} {b}, {none}")
        if kind.lanes > 1:
            safe = self.selected(by_zero, kind, spelled_constant(1, kind), b)
            return self.selected(by_zero, kind, none, self.emit(f"{word} {llvm} {a}, {safe}"))
        # A branch, since a division costs more than that.
        before, divides, end = self.block, self.label("divides"), self.label("end")
        self.do(f"br i1 {by_zero}, label %{end}, label %{divides}")
        self.begin(divides)
        quotient = self.emit(f"{word} {llvm} {a}, {b}")
        self.do(f"br label %{end}")
        self.begin(end)
        return self.emit(f"phi {llvm} [ {quotient}, %{divides} ], [ {none}, %{before} ]")

    def pow_value(self, op: Op, kind: Type, a: str, b: str) -> str:
        self.declared[_INTEGER_POWER] = None
        is_negative = "false"
        if op.operands[1].type == I64:
            is_negative = self.emit(f"icmp slt i64 {b}, 0")
        return self.emit(f"call i64 @integer_power(i64 {a}, i64 {b}, i1 {is_negative})")

    def convert_value(self, op: Op, kind: Type, a: str) -> str:
        assert isinstance(op.type, Type)
        return self.converted(a, kind, op.type)

    def converted(self, text: str, own: Type, kind: Type) -> str:
        """Convert a number; integers wrap, also those of floats that do not fit."""
        source, target = spelled(own), spelled(kind)
        if own == kind:
            return text
        if kind.kind == "b":
            word = "fcmp une" if own.is_float else "icmp ne"
            return self.emit(f"{word} {source} {text}, {spelled_constant(0, own)}")
        if kind.is_float and own.is_float:
            word = "fpext" if kind.bits > own.bits else "fptrunc"
        elif kind.is_float:
            if kind.scalar == F16:
                wide = F64._replace(lanes=kind.lanes)
                return self.converted(self.converted(text, own, wide), wide, kind)
            if own.kind == "b" and own.lanes > 1:  # LLVM's SPIR-V back end has no such conversion.
                one, zero = (spelled_constant(value, kind) for value in (1, 0))
                return self.selected(text, kind, one, zero)
            word = "sitofp" if own.kind == "i" else "uitofp"
        elif own.is_float:
            return self.cut(text, own, kind)
        elif own.bits == kind.bits:
            return text
        else:
            word = "trunc" if own.bits > kind.bits else "sext" if own.kind == "i" else "zext"
        return self.emit(f"{word} {source} {text} to {target}")

    def cut(self, text: str, own: Type, kind: Type) -> str:
        """Convert a float to an integer. LLVM does not define this for numbers that do not fit."""
        if own.bits == 16:
            wide = F32._replace(lanes=own.lanes)
            return self.converted(self.converted(text, own, wide), wide, kind)
        source, target = spelled(own), spelled(kind)
        if kind.kind == "i" and kind.bits >= 32:
            return self.emit(f"fptosi {source} {text} to {target}")
        through = (I64 if kind.bits >= 32 else I32)._replace(lanes=kind.lanes)
        whole = self.emit(f"fptosi {source} {text} to {spelled(through)}")
        if kind.bits < 64:
            return self.emit(f"trunc {spelled(through)} {whole} to {target}")
        positive = self.emit(f"fptoui {source} {text} to {target}")
        is_negative = self.emit(f"fcmp olt {source} {text}, {spelled_constant(0, own)}")
        return self.selected(is_negative, kind, whole, positive)

    def bitcast_value(self, op: Op, kind: Type, a: str) -> str:
        assert op.type is not None
        source, target = spelled(kind), spelled(op.type)
        return a if source == target else self.emit(f"bitcast {source} {a} to {target}")

    def low_bits_value(self, op: Op, kind: Type, a: str) -> str:
        return self.emit(self.call(abi.LOW_BITS, "i32", [("i64", a)], _OPAQUE))

    def write_pack(self, op: Op) -> None:
        assert op.type is not None
        vector = "poison"
        for lane, operand in enumerate(op.operands):
            kind, text = self.typed(operand)
            instruction = f"insertelement {spelled(op.type)} {vector}, {kind} {text}, i32 {lane}"
            vector = self.emit(instruction)
        self.values[id(op)] = vector

    def extract_value(self, op: Op, kind: Type, vector: str, lane: str | None = None) -> str:
        position = f"i32 {op.attribute}" if lane is None else f"i64 {lane}"
        return self.emit(f"extractelement {spelled(kind)} {vector}, {position}")

    # -- device functions -------------------------------------------------------------------------

    def write_math(self, op: Op) -> None:
        assert op.type is not None
        codes = "".join(_code(operand.type) for operand in op.operands)  # type: ignore[arg-type]
        name = abi.mangled(op.attribute, codes)
        arguments = [self.typed(operand) for operand in op.operands]
        self.values[id(op)] = self.emit(self.call(name, spelled(op.type), arguments, _PURE))

    def write_index(self, op: Op) -> None:
        kind, dimension = op.attribute
        name = getattr(abi, kind.upper())
        if kind.startswith("sub_group"):
            number = self.emit(self.call(abi.mangled(name, "v"), "i32", [], _PURE))
            self.values[id(op)] = self.emit(f"zext i32 {number} to i64")
            return
        arguments = [("i32", str(dimension))]
        number = self.emit(self.call(abi.mangled(name, "j"), "i64", arguments, _PURE))
        self.declared["declare void @llvm.assume(i1)"] = None
        # Sums with small numbers do not wrap around, so that LLVM can tell their signs.
        is_small = self.emit(f"icmp ult i64 {number}, {1 << 48}")
        self.do(f"call void @llvm.assume(i1 {is_small})")
        self.values[id(op)] = number

    def write_barrier(self, op: Op) -> None:
        waiting, memory = op.attribute
        numbers = [_scope(waiting), _scope(memory), abi.semantics(MemoryOrder.SEQ_CST)]
        arguments = [("i32", str(number)) for number in numbers]
        name = abi.mangled("__spirv_ControlBarrier", "jjj")
        self.do(self.call(name, "void", arguments, _TOGETHER))

    def write_fence(self, op: Op) -> None:
        scope, order = op.attribute
        arguments = [("i32", str(_scope(scope))), ("i32", str(_semantics(order)))]
        name = abi.mangled("__spirv_MemoryBarrier", "jj")
        self.do(self.call(name, "void", arguments, _TOGETHER))

    def write_group(self, op: Op) -> None:
        scope, function, operation = op.attribute
        kind = op.type
        assert isinstance(kind, Type)
        value, *others = (self.typed(operand) for operand in op.operands)
        leading = [("i32", str(_scope(scope)))]
        if function == "shuffle":
            name = abi.mangled("sub_group_shuffle", f"{_code(kind)}j")
            arguments = [value, *others]
        elif function == "broadcast":
            identifier, code = self.identifier([text for _, text in others])
            name = abi.mangled("__spirv_GroupBroadcast", f"j{_code(kind)}{code}")
            arguments = [*leading, value, identifier]
        else:
            word = _GROUP_OPERATIONS[operation][_by_kind(kind)]
            name = abi.mangled(f"__spirv_Group{word}", f"jj{_code(kind)}")
            arguments = [*leading, ("i32", str(_GROUP_STEPS.index(function))), value]
        self.values[id(op)] = self.emit(self.call(name, spelled(kind), arguments, _TOGETHER))

    def identifier(self, parts: list[str]) -> tuple[tuple[str, str], str]:
        """Return the id of a work-item in its group as an argument, and the code of its type."""
        if len(parts) == 1:
            return ("i64", parts[0]), "m"
        llvm, vector = f"<{len(parts)} x i64>", "poison"
        for dimension, part in enumerate(parts):
            vector = self.emit(f"insertelement {llvm} {vector}, i64 {part}, i32 {dimension}")
        return (llvm, vector), f"Dv{len(parts)}_m"

    def write_print(self, op: Op) -> None:
        operands = iter(op.operands)
        values: list[tuple[str, str]] = []
        codes = ""

        def converted(found: re.Match[str]) -> str:
            nonlocal codes
            if found["letter"] == "%":
                return found[0]
            operand = next(operands)
            kind, text = self.typed(operand)
            if operand.type == BOOL:
                kind = f"ptr addrspace({_CONSTANT_SPACE})"
                yes, no = self.string("True"), self.string("False")
                text = self.emit(f"select i1 {text}, {kind} {yes}, {kind} {no}")
            values.append((kind, text))
            # One declaration for each list of types: SPIR-V has no pointers for "...".
            codes += {"i32": "i", "i64": "l", "double": "d"}.get(kind, "PU3AS2Kc")
            return f"%{found['flags']}{'l' * (kind == 'i64')}{found['letter']}"

        text = self.string(_CONVERSION.sub(converted, op.attribute))
        arguments = [(f"ptr addrspace({_CONSTANT_SPACE})", text), *values]
        name = abi.mangled("__spirv_ocl_printf", f"PU3AS2Kc{codes}")
        self.emit(self.call(name, "i32", arguments))

    def string(self, text: str) -> str:
        """Return the address of a string in constant memory."""
        content = text.encode() + b"\0"
        escaped = "".join(f"\\{byte:02X}" for byte in content)
        name = f"@dparray_print.{self.label('')}"
        self.variables.append(
            f"{name} = internal addrspace({_CONSTANT_SPACE}) constant [{len(content)} x i8] "
            f'c"{escaped}"'
        )
        return name

    # -- memory -----------------------------------------------------------------------------------

    def write_allocate(self, op: Op) -> None:
        assert isinstance(op.type, Pointer)
        storage = f"[{op.attribute} x {_in_memory(op.type.element)}]"
        if op.type.space == LOCAL:
            name = f"@local_array.{self.label('')}"
            self.variables.append(f"{name} = internal addrspace({LOCAL}) global {storage} undef")
        else:
            name = f"%{self.label('memory')}"
            self.allocated[name] = storage
        self.values[id(op)] = name

    def write_launch(self, op: Op) -> None:
        """Write a call that runs a kernel, with the words of its launch on the stack."""
        ndim, multiple, least = op.attribute
        address, *words = op.operands
        data = f"%{self.label('launch')}"
        self.allocated[data] = f"[{abi.HEAD_WORDS + len(words)} x i64], align 8"
        for number, each in enumerate(words):
            place = self.emit(f"getelementptr i64, ptr {data}, i64 {abi.HEAD_WORDS + number}")
            kind, text = self.typed(each)
            if each.type == BOOL:
                kind, text = "i8", self.emit(f"zext i1 {text} to i8")
            self.do(f"store {kind} {text}, ptr {place}")
        self.declared[f"declare i32 @{abi.LAUNCH_KERNEL}(i64, ptr, i32, i64, i64)"] = None
        status = self.emit(
            f"call i32 @{abi.LAUNCH_KERNEL}(i64 {self.text(address)}, ptr {data}, i32 {ndim}, "
            f"i64 {multiple}, i64 {least})"
        )
        self.end_if(self.emit(f"icmp ne i32 {status}, 0"))

    def write_stop(self, op: Op) -> None:
        """End the function, whose caller raises the exception of the number."""
        self.stop(str(op.attribute))

    def note_stop(self, number: str) -> None:
        self.declared[f"declare void @{abi.NOTE_STOP}(i32)"] = None
        self.do(f"call void @{abi.NOTE_STOP}(i32 {number})")

    def write_new(self, op: Op) -> None:
        """Write a call for memory; without it the function ends."""
        assert isinstance(op.type, Pointer)
        kind, size = spelled(op.type), op.type.element.size
        self.declared[f"declare {kind} @{abi.NEW_MEMORY}(i64, i64, i32, i32, ptr)"] = None
        count, *live = op.operands
        pointers = f"%{self.label('live')}"
        self.allocated[pointers] = f"[{max(len(live), 1)} x i64]"
        for number, each in enumerate(live):
            place = self.emit(f"getelementptr i64, ptr {pointers}, i64 {number}")
            self.do(f"store {' '.join(self.typed(each))}, ptr {place}")
        memory = self.emit(
            f"call {kind} @{abi.NEW_MEMORY}(i64 {self.text(count)}, i64 {size}, "
            f"i32 {int('zeros' in op.marks)}, i32 {len(live)}, ptr {pointers})"
        )
        is_negative = self.emit(f"icmp slt i64 {self.text(count)}, 0")
        reason = self.emit(f"select i1 {is_negative}, i32 {abi.NEGATIVE}, i32 {abi.NO_MEMORY}")
        self.end_if(self.emit(f"icmp eq {kind} {memory}, null"), reason)
        self.values[id(op)] = memory

    def end_if(self, condition: str, number: str = "") -> None:
        """End the function if a condition holds, and note the reason."""
        stops, goes_on = self.label("stops"), self.label("goes.on")
        self.do(f"br i1 {condition}, label %{stops}, label %{goes_on}")
        self.begin(stops)
        self.stop(number)
        self.begin(goes_on)

    def stop(self, number: str) -> None:
        """Write the end of the function of the host, or of a part, with a reason."""
        if self.in_part:
            self.lines.append(f"{_STOP} {number or '-1'}")
            return
        if number:
            self.note_stop(number)
        self.lines.append(_RETURN)

    def write_offset(self, op: Op) -> None:
        pointer, index = op.operands
        assert isinstance(pointer.type, Pointer)
        element = "i8" if op.attribute == "bytes" else _in_memory(pointer.type.element)
        address = " ".join(self.typed(pointer))
        self.values[id(op)] = self.emit(
            f"getelementptr {element}, {address}, i64 {self.text(index)}"
        )

    def write_address(self, op: Op) -> None:
        pointer = " ".join(self.typed(op.operands[0]))
        self.values[id(op)] = self.emit(f"ptrtoint {pointer} to i64")

    def write_load(self, op: Op) -> None:
        kind = op.type
        assert isinstance(kind, Type)
        pointer = " ".join(self.typed(op.operands[0]))
        value = self.emit(f"load {_in_memory(kind)}, {pointer}{_alignment(op)}")
        if "early" in op.marks:  # LLVM moves no load over an effect, into a condition.
            self.declared["declare void @llvm.sideeffect()"] = None
            self.do("call void @llvm.sideeffect()")
        if kind.kind == "b":
            none = spelled_constant(0, I8._replace(lanes=kind.lanes))
            value = self.emit(f"icmp ne {_in_memory(kind)} {value}, {none}")
        self.values[id(op)] = value

    def write_store(self, op: Op) -> None:
        pointer, value = op.operands
        kind, text = value.type, self.text(value)
        assert isinstance(kind, Type)
        if kind.kind == "b":
            text = self.emit(f"zext {spelled(kind)} {text} to {_in_memory(kind)}")
        address = " ".join(self.typed(pointer))
        self.do(f"store {_in_memory(kind)} {text}, {address}{_alignment(op)}")

    def write_atomic(self, op: Op) -> None:
        method, scope, orders = op.attribute
        pointer, *values = op.operands
        assert isinstance(pointer.type, Pointer)
        element = kind = pointer.type.element
        texts = [self.text(value) for value in values]
        if method in _MOVES:
            name = _MOVES[method]
            if element.is_float:
                kind = Type("i", element.bits)
                source, target = spelled(element), spelled(kind)
                texts = [self.emit(f"bitcast {source} {text} to {target}") for text in texts]
        else:
            name = _UPDATES[method][_by_kind(element)]
            if not name:
                name, texts = "FAddEXT", [self.emit(f"fneg {spelled(kind)} {texts[0]}")]
        code = _code(kind)
        codes = f"PU3AS{pointer.type.space}{code}" + "j" * (1 + len(orders)) + code * len(texts)
        numbers = [_scope(scope), *map(_semantics, orders)]
        arguments = [self.typed(pointer), *(("i32", str(number)) for number in numbers)]
        arguments += [(spelled(kind), text) for text in texts]
        mangled = abi.mangled(f"__spirv_Atomic{name}", codes)
        if op.type is None:
            self.do(self.call(mangled, "void", arguments, _TOGETHER))
            return
        value = self.emit(self.call(mangled, spelled(kind), arguments, _TOGETHER))
        if kind != element:
            value = self.emit(f"bitcast {spelled(kind)} {value} to {spelled(element)}")
        self.values[id(op)] = value


def _procedure(number: int) -> str:
    return f"@dparray.procedure{number}"


def _alignment(op: Op) -> str:
    return f", align {op.attribute}" if op.attribute else ""


def _scope(name: str) -> int:
    return abi.scope(SCOPES.index(name))


def _semantics(name: str) -> int:
    return abi.semantics(MemoryOrder[name.upper()])
