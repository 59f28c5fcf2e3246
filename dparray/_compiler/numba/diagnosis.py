"""Turn a compiler error into a few lines: the source line, a caret, and the fix.

When a kernel fails to compile, its syntax tree is searched for constructs that device code does not
support. The error reports a finding on the line that Numba names, otherwise the first finding,
otherwise Numba's most specific sentence. The full text stays on the error.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import dis
import math
import random
import re
import types
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from dparray import kernel_api
from dparray._language.references import referred_values
from dparray._language.scalar_functions import scalar_function
from dparray._language.source import INCIDENTAL, Source, quote, source_of

_DEVICE_BUILTINS = frozenset(
    {"abs", "bool", "complex", "divmod", "enumerate", "float", "int", "len", "max", "min", "pow",
     "print", "range", "round", "sum", "tuple", "zip"}
)  # fmt: skip
_HOST_CONTAINERS = (bytearray, bytes, dict, frozenset, list, set, str)
_HOST_PACKAGES = frozenset({"dparray", "numba", "math", "cmath", "operator"})
_STATEMENTS = {
    ast.Try: "an exception handler",
    ast.Raise: "raising an exception",
    ast.With: "a with block",
    ast.Import: "an import",
    ast.ImportFrom: "an import",
    ast.Global: "assigning to a global",
    ast.Nonlocal: "assigning to a captured variable",
    ast.ClassDef: "a class",
    ast.Yield: "a generator",
    ast.YieldFrom: "a generator",
    ast.GeneratorExp: "a generator",
    ast.Await: "await",
    ast.Delete: "del",
    ast.NamedExpr: "an assignment inside an expression",
}
#: Numba colors its messages where the package colorama is installed.
_COLORS = re.compile(r"\x1b\[[\d;]*m")
# Short replacements.
_INSTEAD: dict[type, str] = {
    ast.NamedExpr: ": assign on a line of its own; for a condition of while, begin the loop by "
    "while True:, assign, and break where the condition is false",
    ast.Delete: ": leave the del out",
}
_CONTAINERS = {
    ast.List: "a list",
    ast.ListComp: "a list",
    ast.Dict: "a dict",
    ast.DictComp: "a dict",
    ast.Set: "a set",
    ast.SetComp: "a set",
}
# The same for the bytecode of a function whose source is unavailable.
_BUILDING = {
    "BUILD_LIST": "a list",
    "BUILD_MAP": "a dict",
    "BUILD_CONST_KEY_MAP": "a dict",
    "BUILD_SET": "a set",
}
# The same for a string with values in it.
_FORMATTING = frozenset({"CONVERT_VALUE", "FORMAT_WITH_SPEC"})
_ON_ARRAYS = (
    "works on whole arrays and is not available in a kernel, which works on elements: write a "
    "loop, use the math module, or call dparray's function on the host"
)
_NOT_AN_ELEMENT = (
    "a whole array or a row of one, and a kernel computes with elements: write an index for each "
    "dimension, as in x[i] or x[i, j]"
)
_BY_POSITION = (
    "is defined inside a function, where arguments are passed by position: define it outside, as a "
    "dp.device_func"
)
_NO_CONTAINERS = (
    "device code has no memory to grow in; use dp.PrivateArray(size, dtype) for one work-item, "
    "dp.LocalAccessor for a work-group, or an array argument"
)

#: The additional parameter of the kernel copies that ``dp.config.debug`` launches.
RECORD = "dparray_fault"
#: Prefix of functions that replace code that may raise an exception.
MAY_RAISE = "dparray: "


class Finding(NamedTuple):
    """A construct that device code does not support, its position, and the replacement."""

    line: int
    column: int
    end_column: int
    problem: str


def located(error: Exception) -> str:
    """Return the text of a compiler error, with the line that the compiler had reached.

    Errors of non-Numba classes do not contain the line; the frames that raised them do.
    """
    says_where = type(error).__module__.startswith("numba")
    trace = None if says_where else error.__traceback__
    places = []
    while trace is not None:
        place: Any = getattr(trace.tb_frame.f_locals.get("self"), "loc", None)
        if hasattr(place, "filename") and hasattr(place, "line"):
            places.append(f"{place.filename} ({place.line})")
        trace = trace.tb_next
    lines = [_COLORS.sub("", str(error)), *(f"At {place}" for place in dict.fromkeys(places))]
    return "\n".join(lines)


def describe_failure(
    function: Callable[..., Any], parameters: Sequence[str], text: str, *, is_kernel: bool = True
) -> str:
    """Return the few lines that explain why ``function`` does not compile.

    Args:
        function: the kernel, or a device function.
        parameters: its parameters with their types, for the first line.
        text: the compiler's full text.
        is_kernel: whether it is a kernel; device functions may return a value.
    """
    name = function.__name__
    kind = "kernel" if is_kernel else "function"
    parameters = [label for label in parameters if label.partition(":")[0] != RECORD]
    text = text.replace(f"{RECORD}, ", "")
    head = f"{kind} {name} does not compile for ({', '.join(parameters)})\n"
    source = source_of(function)
    arrays = {label.partition(":")[0] for label in parameters if "-D" in label}
    findings = list(_findings(function, source, is_kernel, arrays)) if source else []
    blamed = _blamed_line(text, function)
    for finding in findings:
        if blamed is None or finding.line == blamed:
            break
    else:
        finding = findings[0] if findings else None  # type: ignore[assignment]
    if finding is not None and source is not None:
        excerpt = quote(source, finding.line, finding.column, finding.end_column)
        return head + excerpt + finding.problem
    for called in called_device_functions(function):
        inner = source_of(called)
        for found in _findings(called, inner, False):
            assert inner is not None
            excerpt = quote(inner, found.line, found.column, found.end_column)
            return f"{head}in the device function {called.__name__}:\n{excerpt}{found.problem}"
    excerpt = ""
    file = function.__code__.co_filename
    if source is None:
        for built, line in _containers(function.__code__):
            return (
                f"{head}  {file}:{line}\n{built} is not available in device code: {_NO_CONTAINERS}"
            )
    for called in reversed(_reached(function)):
        blamed_inside, inner = _blamed_line(text, called), source_of(called)
        if blamed_inside is not None and inner is not None:
            shown = quote(inner, blamed_inside, None, None)
            excerpt = f"in the device function {called.__name__}:\n{shown}"
            break
    else:
        if blamed is not None:
            shown = f"  {file}:{blamed}\n"
            excerpt = quote(source, blamed, None, None) if source else shown
    named = re.search(r"NameError: name '(\w+)' is not defined|^(LocalArray): work-items", text)
    if named and source:
        name = named[1] or named[2]
        for node in ast.walk(source.tree):
            if name in (getattr(node, "id", ""), getattr(node, "attr", "")):
                start = node.col_offset + source.indent
                end = node.end_col_offset + source.indent
                line = node.lineno + source.first - 1
                excerpt = quote(source, line, start, end)
                break
    return head + excerpt + _shortened(text) + "\nThe compiler's full text is in .details"


def _containers(code: types.CodeType) -> Iterator[tuple[str, int]]:
    """Yield the unsupported containers that a function builds, with their lines."""
    line = code.co_firstlineno
    for step in dis.get_instructions(code):
        line = step.starts_line or line
        if step.opname in _BUILDING:
            yield _BUILDING[step.opname], line


def _blamed_line(text: str, function: Callable[..., Any]) -> int | None:
    """Return the last line of the function that the compiler names."""
    code = function.__code__
    lines = {line for _, _, line in code.co_lines() if line is not None}
    blamed = None
    name = re.escape(code.co_filename.rpartition("/")[2])
    for match in re.finditer(rf'{name}"?(?:, line | \()(\d+)', text):
        if min(lines) <= int(match[1]) <= max(lines):
            blamed = int(match[1])
    return blamed


# Compiler texts, and their meaning for the author of the kernel; the first match counts.
_TELLING = (
    (
        r"Int value is too large: (-?[\d*<]+)",
        "the integer {0} does not fit into 64 bits: write a floating-point number, as in 1e20",
    ),
    (
        r"Cannot modify readonly array",
        "the array that is written here is read-only: it repeats elements (dp.broadcast_to), or "
        "its owner forbids writes. Launch the kernel on a copy, dp.asarray(x, copy=True)",
    ),
    (
        r"Unknown attribute 'get_global\w+' of type Item",
        "the Item of a Range has get_id and get_range; for get_global_id, launch over an NdRange",
    ),
    (
        r"Unknown attribute '(?:get_(?:sub_)?group|get_local\w+)' of type Item",
        "an Item of a Range has no group and no local id: launch over an NdRange, which gives an "
        "NdItem",
    ),
    (
        r"Unknown attribute '(?:get_id|get_range|get_linear_id)' of type NdItem",
        "an NdItem has get_global_id and get_local_id; get_id belongs to the Item of a Range",
    ),
    (r"AtomicRef(?:\.\w+)?(?:: | works ).+", "{all}"),
    (
        r">>> AtomicRef\(\w+\[[^\]\n]*\]\)",
        "AtomicRef requires the index of an element: dp.AtomicRef(x, index=i)",
    ),
    (r"\b(?:[a-z_]+_group|(?:[a-z]+_)?group_[a-z_]+): .+", "{all}"),
    (r"a sub-group has one dimension: .+", "{all}"),
    (r"(?:Local|Private)Array: it has .+", "{all}"),
    (
        r"Function\(<class '[\w.]+\.(LocalArray|PrivateArray)'>\)",
        "a {0} takes a constant shape (positive numbers in the kernel's text, globals, captured "
        "values, parameters with dp.constexpr, or sums and products of them) and a NumPy dtype",
    ),
    (r"LocalArray: work-items .+", "{all}"),
    (r"printf: .+", "{all}"),
    (r"\bvec(?:_[a-z]+|\.[a-z]+)?: .+", "{all}"),
    (
        r"group_barrier\((?:Nd)?Item<",
        "group_barrier takes item.get_group() of an NdItem: launch over an NdRange",
    ),
    (
        r"(?:set|get)item\([^\n]*\b(?:Nd)?Item<",
        "an index is an integer: item.get_id(0), not the item itself",
    ),
    (
        r"(?:set|get)item\((\S+\[\d-D.*?\]), (float\d+)",
        "an index is an integer, and this one is {1}: convert it with int(...)",
    ),
    (
        r"(?:(?:item|index)\([^\n]*, bool|getitem\(\w+\[[^\]\n]*\], (?:True|False))[,)]",
        "an index must be an integer, and this one is a Boolean: convert it with int(...)",
    ),
    (
        r"(?:getitem\(|getiter with parameters \()Tuple\(",
        "a tuple of several types takes constant indices only, and no loop: make all of its "
        "elements one type",
    ),
    (r"have a field named 'meminfo'|arg mismatch: i64 addrspace", f"something here {_ON_ARRAYS}"),
    (
        r"(?:bool|truth|not_)\(\w[\w ]*\[\d-D",
        "whether a whole array is true is not known in a kernel, which works on elements: ask for "
        "one of them, as in if x[i]",
    ),
    (
        r"getitem>?\([^\n]*, (?:\.\.\.|ellipsis)\)",
        "an index that is ... alone is not available in a kernel: leave it out",
    ),
    (
        r"(?:No definition for lowering |Cannot resolve setattr: \()(.+?)\)?\.(\w+) = ",
        "'.{1}' of {0} cannot be assigned to in a kernel",
    ),
    (
        r"wrong tuple length for [^\n]*expected (\d+), got (\d+)",
        "{0} names are assigned from {1} values",
    ),
    (
        r"Unsupported use of cell variable",
        "a function inside of this one refers to itself, or to what is assigned more than once: "
        "recursion is not available in device code; write a loop, and define functions outside, as "
        "a dp.device_func",
    ),
    (  # Where dp.jit has loaded Numba's `in`, the next row would name a function of its body.
        r"found for signature:\s+>>> contains\([^\n]*?(\w+\[\d-D[^\]\n]*\])",
        f"an operand of `in` is {{0}}, {_NOT_AN_ELEMENT}",
    ),
    (
        r"Use of unsupported NumPy function 'numpy\.([\w.]+)'",
        "np.{0} is not available in a kernel; what it gives on the host can be a number with a "
        "name outside of the kernel, or an argument",
    ),
    (r"BoundFunction\(\(.+, '(\w+)'\) for .+\) works on whole arrays", f"'.{{0}}' {_ON_ARRAYS}"),
    (
        r"No definition for lowering <built-in function (\w+)>\((.+?),?\) ->",
        "{0}({1}) is not available in a kernel",
    ),
    (
        r"Cannot cast type\(DeviceDispatcher\(.+\)\) to FunctionType|function_type\.FunctionType"
        r"|Cannot unify Function\(.+\) and Function\("
        # Once a program has used Numba's first-class functions, the types unify.
        r"|'TargetContext' object has no attribute 'get_env_manager'",
        "which function is called is known when a kernel is compiled: call both, and choose one of "
        "the results, as in f(x) if condition else g(x)",
    ),
    (r"Cannot cast IntEnum<\w+>\((\w+)\) to", "{0} is an enumeration: use the member's .value"),
    (r"the operation (?:is|must be) one of .+", "{all}"),
    (r"takes an? .+; got .+", "{all}"),
    (r"np\.[fi]info takes types of .+; got .+", "{all}"),
    (r"\w+ takes \*\*\w+[^\n]*", "{all}"),
    (
        r"\w+\([^\n]*\): (?:missing|too many|got an? |multiple values|'\w+' parameter)[^\n]+",
        "the call does not fit the function {all}",
    ),
    (
        r"the bounds of a (range|slice) are integers; got (\w+)",
        "the bounds of a {0} are integers, and one is {1}: convert it with int(...)",
    ),
    (
        r"the step of a (range|slice) is not 0",
        "the step of a {0} is not 0: it would have no items, and Python raises ValueError",
    ),
    (
        r"the range of this kernel has .+; got dimension -?\d+",
        "{all}. Use an existing dimension, or launch over a range with more dimensions",
    ),
    (
        r"it may raise TypeError: expected (\S+), got None",
        "a value used here is None on some path, where {0} is needed: give it a number on all of "
        "them",
    ),
    (
        r"it may raise (.+)",
        "it may raise {0}, and a work-item of a device has no caller to raise it to: test for that "
        "case before",
    ),
    (
        r"found for signature:\s+>>> [^\n]*\bnone\b",
        "a value used here is None, which cannot be stored or computed with; a kernel can only "
        "ask whether a value is None",
    ),
    (r"it returns \S+, where .+", "{all}"),
    (r"an? (?:extent|size|index) of .+; got .+", "{all}"),
    (
        r"Function\(<function (atomic_fence|group_barrier) ",
        "atomic_fence takes an order and a scope, as in dp.atomic_fence(dp.MemoryOrder.ACQ_REL, "
        "dp.MemoryScope.DEVICE), and group_barrier a group and perhaps a scope, as in "
        "dp.group_barrier(item.get_group(), dp.MemoryScope.WORK_GROUP)",
    ),
    (
        r">>> (?:overload_method|_load|_store|_compare_exchange)\(AtomicRef<",
        "an operation of an AtomicRef takes one value, as fetch_add(1) does; load takes none, and "
        "compare_exchange the expected value, or an array with it, and the new value",
    ),
    (r"item\.\w+ requires a dimension: .+", "{all}"),
    (
        r"(?:setitem|getitem)\(((?:u?int|float|complex)\d+|bool), ",
        "what is indexed is one {0}, which has no elements: leave the index out, or pass an array",
    ),
    (
        r"(?:setitem|getitem)\(\w+\[0-D[^\]\n]*\], ",
        "an array without dimensions has one element, x[()]",
    ),
    (
        r"setitem\(\w+\[\d-D[^\n]*\], [^\n]*, (\w+\[\d-D[^\]\n]*\])\)",
        f"what is assigned is {{0}}, {_NOT_AN_ELEMENT}",
    ),
    (
        r"(?:setitem|getitem)\((\w+\[(\d)-D.*?\]), UniTuple\(\w+ x (\d)\)",
        "too many indices for {0}: it takes {1}, and {2} are given: write one for each dimension",
    ),
    (
        r"(?:setitem|getitem)\((\w+\[(\d)-D.*?\]), Tuple\(",
        "too many indices for {0}: it takes {1}, one for each dimension",
    ),
    (
        r"setitem\((\w+\[.+?\]), [^\n]*, (complex\d+)\)",
        "a {1} does not fit into {0}: write its .real or .imag, or take a complex array",
    ),
    (
        r"NRT required but not enabled",
        "assigning or copying a whole array is not available in a kernel: write a loop over its "
        "elements, or x[:] = y on the host",
    ),
    (
        r"Unknown attribute '(\w+)' of type (\w+\[\d-D.*?\])",
        f"'.{{0}}' of {{1}} {_ON_ARRAYS}",
    ),
    (
        r"Unknown attribute '(\w+)' of type Module\(<module '([\w.]+)'",
        "{1}.{0} is not available in a kernel",
    ),
    (
        r"(?m)Unknown attribute 'astype' of type \w+$",
        "a number has no astype in a kernel: convert it by the name of the type, as in "
        "np.float32(value)",
    ),
    (r"Unknown attribute '(\w+)' of type (.+)", "there is no attribute '{0}' on {1}"),
    (r"NameError: name '(\w+)' is not defined", "the name '{0}' is not defined"),
    (
        r"Untyped global name '(\w+)':? ?(.*)",
        "the value of '{0}' cannot be used in a kernel, which may refer to numbers, tuples of "
        "numbers, device functions and modules: assign what it needs to a name of its own",
    ),
    (
        r"Cannot unify (.+) and (.+) for '\$",
        "a value would be {0} on one path and {1} on another; convert one of them",
    ),
    (
        r"Cannot unify (.+) and (.+) for '(\w+)[\w.$]*'",
        "'{2}' would be {0} on one path and {1} on another; convert one of them",
    ),
    (
        r"No implementation of function Function\(<built-in function (?:[lg][te]|eq|ne)>\) found "
        r"for signature:\s+>>> \w+\(.*?\w+\[\d-D",
        "comparing whole arrays is not available in a kernel, which works on elements: compare "
        "x[i], or make the mask by array code on the host",
    ),
    (
        r"found for signature:\s+>>> (\w+)\([^\n]*?(\w+\[\d-D[^\]\n]*\])",
        f"an operand of {{0}} is {{1}}, {_NOT_AN_ELEMENT}",
    ),
    (
        r"No implementation of function Function\((.+?)\) found for signature:\s+>>> (.+)",
        "{1} is not available in a kernel for these types",
    ),
    (r"No conversion from (.+) to (.+) for", "there is no conversion from {0} to {1}"),
    (
        r"ariable '(\w+)' (?:is not defined|referenced before assignment)",
        "'{0}' may be read before it is assigned: give it a value before the loop or condition",
    ),
    (
        r"Use of unsupported opcode \(UNPACK_EX\)",
        "a starred name takes a list, which is not available in a kernel: name each value",
    ),
    (
        r"Use of unsupported opcode \((\w+)\)",
        "the Python operation {0} is not available in a kernel",
    ),
)


def _in_words(text: str) -> str:
    """Format Numba's types for messages."""
    text = re.sub(r"global (?:\w+ )?array\((\w+), (\d+)d, (\w)\)", r"\1[\2-D, \3]", text)
    text = re.sub(r"(\w+) array\((\w+), (\d+)d, \w\)", r"\1 \2[\3-D]", text)
    return re.sub(r"Literal\[\w+\]\((.*?)\)", r"\1", text)


def _shortened(text: str) -> str:
    text = _in_words(text)
    for pattern, sentence in _TELLING:
        match = re.search(pattern, text)
        if match:
            parts = (part.strip() for part in match.groups())
            return sentence.format(*parts, all=match[0].strip()) + _suggestion(text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("Failed in", "During", "File"))]
    return (telling or lines or ["no reason was given"])[0][:200] + _suggestion(text)


def _suggestion(text: str) -> str:
    """Return the attribute that was probably meant by an unknown one; empty if there is none."""
    missing = re.search(r"module '([\w.]+)' has no attribute '(\w+)'", text)
    unknown = re.search(r"Unknown attribute '(\w+)' of type (\w+)", text)
    known: Collection[str] = ()
    if missing is not None:
        module, name = missing.groups()
        known = dir(math) if module == "math" else kernel_api.__all__
        if module not in ("math", "dparray", "dparray.kernel_api"):
            return ""
    elif unknown is not None:
        name, owner = unknown.groups()
        if owner in ("Item", "NdItem", "Group", "SubGroup", "AtomicRef"):
            api = getattr(kernel_api, owner)
            known = [each for each in dir(api) if not each.startswith("_")]
    else:
        return ""
    # The same number in the other kind of item; the global range is the whole of a Range.
    renamed = name.replace("_global", "") if "_global" in name else name.replace("_", "_global_", 1)
    meant = [renamed] if renamed in known else []
    meant = meant or difflib.get_close_matches(name, known, 2, 0.8)
    meant = meant or difflib.get_close_matches(name, known, 1)
    if "_local" in name and unknown is not None and owner == "Item":
        return ""  # the nearest name would be another number
    takes_dimension = r"get_(?:(?:global|local|group)_)?(?:id|range)"
    if unknown is not None and owner in ("Item", "NdItem", "Group"):
        meant = [f"{one}(0)" if re.fullmatch(takes_dimension, one) else one for one in meant]
    return f"; did you mean {' or '.join(meant)}?" if meant else ""


def _resolve(function: Callable[..., Any], node: ast.expr) -> Any:
    """Return the object of a name or dotted name in the function; ``None`` if unknown."""
    path = []
    while isinstance(node, ast.Attribute):
        path.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    value = {**vars(builtins), **referred_values(function)}.get(node.id)
    for name in reversed(path):
        value = getattr(value, name, None)
    return value


def called_device_functions(function: Callable[..., Any]) -> Iterator[types.FunctionType]:
    """Return the Python functions of the device functions that a function refers to."""
    for value in referred_values(function).values():
        called = getattr(value, "py_func", None)
        if isinstance(called, types.FunctionType):
            yield called


def refusal(function: Callable[..., Any]) -> str | None:
    """Return why a function must not be compiled although Numba would; ``None`` if it may.

    Numba compiles an exception to a silent end of the work-item. Devices have no stack for
    recursion.
    """
    reached = _reached(function)
    codes = [function.__code__, *(one.__code__ for one in reached)]
    steps = {step for code in codes for step in _steps(code)}
    if any("@pytest_ar" in (*code.co_names, *code.co_freevars) for code in codes):
        return (
            "pytest has rewritten the assertions of this file, which a kernel cannot have then: "
            "write PYTEST_DONT_REWRITE into the docstring of the file, or define the kernel in a "
            "module that is not a test"
        )
    for code in codes:
        for number, line in _large_integers(code):
            return f'Int value is too large: {number}\nFile "{code.co_filename}", line {line}'
    if "RAISE_VARARGS" in steps:
        return "raising an exception is not available in device code"
    if steps & _FORMATTING:
        return "a string with a format is not available in device code"
    if any(one in _reached(one) for one in reached):
        return "recursion is not available in device code: write a loop"
    return None


def is_too_large(operator: str, left: Any, right: Any) -> bool:
    """Return whether a power or shift of integer constants certainly exceeds 64 bits."""
    if operator not in ("**", "<<") or type(left) is not int or type(right) is not int:
        return False
    if operator == "<<":
        return left != 0 and right > 64
    return abs(left) > 1 and (right > 64 or (right > 0 and not -(2**63) <= left**right < 2**64))


def _large_integers(code: types.CodeType) -> Iterator[tuple[str, int]]:
    """Yield large integers that Python does not fold and the compiler would wrap, with lines."""
    steps = [step for step in dis.get_instructions(code) if step.opname not in INCIDENTAL]
    for left, right, step in zip(steps, steps[1:], steps[2:], strict=False):
        operator = {"BINARY_POWER": "**", "BINARY_LSHIFT": "<<"}.get(step.opname, step.argrepr)
        are_constants = {left.opname, right.opname} <= {"LOAD_CONST", "LOAD_SMALL_INT"}
        if are_constants and is_too_large(operator, left.argval, right.argval):
            lines = [line for start, _, line in code.co_lines() if line and start <= left.offset]
            yield f"{left.argval}{operator}{right.argval}", lines[-1]


def _reached(function: Callable[..., Any]) -> dict[types.FunctionType, None]:
    """Return all device functions that a call of ``function`` may reach."""
    reached: dict[types.FunctionType, None] = {}
    coming = list(called_device_functions(function))
    while coming:
        called = coming.pop()
        if called not in reached:
            reached[called] = None
            coming.extend(called_device_functions(called))
    return reached


def _steps(code: types.CodeType) -> Iterator[str]:
    """Return the kinds of steps in a function and inner functions, except failing assertions."""
    fails = False
    for step in dis.get_instructions(code):
        fails |= step.opname == "LOAD_ASSERTION_ERROR" or step.argval is AssertionError
        if not fails:
            yield step.opname
        fails &= step.opname != "RAISE_VARARGS"
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _steps(constant)


def _findings(
    function: Callable[..., Any],
    source: Source | None,
    is_kernel: bool,
    arrays: Collection[str] = (),
) -> Iterator[Finding]:
    """Find problems of device code, in source order; ``arrays`` names the array parameters."""
    if source is None:
        return
    # print and the group algorithms take strings, a string alone is a docstring, and constants are
    # compared with strings.
    allowed = {
        id(part)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call | ast.Compare | ast.Expr | ast.JoinedStr | ast.FormattedValue)
        for part in ast.iter_child_nodes(node)
        if isinstance(part, ast.Constant)
        or (isinstance(part, ast.JoinedStr) and isinstance(node, ast.Call | ast.FormattedValue))
    }
    coming: list[tuple[ast.AST, bool]] = [
        (statement, is_kernel) for statement in reversed(source.tree.body)
    ]
    while coming:
        node, in_kernel = coming.pop()
        # A function inside a kernel may return a value.
        inside = in_kernel and not isinstance(node, ast.FunctionDef | ast.Lambda)
        # The message of an assertion is not used on the device.
        parts = [node.test] if isinstance(node, ast.Assert) else ast.iter_child_nodes(node)
        coming += [(part, inside) for part in reversed(list(parts))]
        problem = _problem(function, node, in_kernel) or _array_problem(function, node, arrays)
        if problem is None or id(node) in allowed:
            continue
        if isinstance(node, ast.expr | ast.stmt):
            one_line = node.end_lineno == node.lineno
            end = node.end_col_offset if one_line else None
            yield Finding(
                node.lineno + source.first - 1,
                node.col_offset + source.indent,
                (end if end is not None else node.col_offset + 1) + source.indent,
                problem,
            )


def _array_problem(
    function: Callable[..., Any], node: ast.AST, arrays: Collection[str]
) -> str | None:
    """Return the problem of a node that uses a parameter as an array."""
    if isinstance(node, ast.BinOp):
        for operand in (node.left, node.right):
            if isinstance(operand, ast.Name) and operand.id in arrays:
                return f"{ast.unparse(node)} {_ON_ARRAYS}"
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("max", "min")
        and [getattr(each, "id", None) in arrays for each in node.args] == [True]
    ):
        return f"{ast.unparse(node)} {_ON_ARRAYS}"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner = node.func.value
        takes_array = any(getattr(each, "id", None) in arrays for each in node.args)
        is_scalar = takes_array and scalar_function(_resolve(function, node.func)) is not None
        if is_scalar or (isinstance(owner, ast.Name) and owner.id in arrays):
            return f"{ast.unparse(node.func)} {_ON_ARRAYS}"
    return None


def _problem(function: Callable[..., Any], node: ast.AST, is_kernel: bool) -> str | None:
    if isinstance(node, ast.Return) and node.value is not None and is_kernel:
        if isinstance(node.value, ast.Constant) and node.value.value is None:
            return None
        return "a kernel returns nothing: write the result into an array argument"
    if type(node) in _STATEMENTS:
        instead = _INSTEAD.get(type(node), "")
        return f"{_STATEMENTS[type(node)]} is not available in device code{instead}"
    if type(node) in _CONTAINERS:
        return f"{_CONTAINERS[type(node)]} is not available in device code: {_NO_CONTAINERS}"
    if isinstance(node, ast.FormattedValue) and (node.format_spec or node.conversion != -1):
        return 'an f-string in a kernel takes no format; write dp.printf("%.3f\\n", x)'
    if isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    ):
        return "a string is not available in device code; only print takes one, beside a number"
    if isinstance(node, ast.Call):
        return _call_problem(function, node)
    if isinstance(node, ast.FunctionDef | ast.Lambda) and node.args.kwonlyargs:
        return f"{getattr(node, 'name', 'the lambda')} {_BY_POSITION}"
    if isinstance(node, ast.FunctionDef) and node.decorator_list:
        return f"{node.name} is decorated inside a function: define it outside"
    if isinstance(node, ast.Name):
        if node.id in function.__code__.co_freevars and node.id not in referred_values(function):
            return f"nothing is assigned to '{node.id}' yet: launch the kernel after that"
        return _value_problem(node.id, _resolve(function, node))
    return None


def _value_problem(name: str, value: Any) -> str | None:
    """Return the problem of a global or captured value."""
    if isinstance(value, np.ndarray):
        return (
            f"{name} is a NumPy array of the host: pass dp.asarray({name}) as an "
            "argument; a few constants can be a tuple"
        )
    if hasattr(value, "usm_type") or hasattr(value, "__sycl_usm_array_interface__"):
        return f"{name} is an array from outside of the kernel: pass it as an argument"
    if isinstance(value, _HOST_CONTAINERS):
        return (
            f"{name} is a {type(value).__name__} of the host: a few constants can be a tuple, many "
            "numbers are passed as an array"
        )
    return None


def _call_problem(function: Callable[..., Any], call: ast.Call) -> str | None:
    called = _resolve(function, call.func)
    if called is None:
        code = function.__code__
        is_inside = getattr(call.func, "id", None) in (*code.co_varnames, *code.co_cellvars)
        all_by_name = call.keywords and not call.args
        return f"{ast.unparse(call.func)} {_BY_POSITION}" if is_inside and all_by_name else None
    name = ast.unparse(call.func)
    if called is print and call.keywords:
        return (
            f"print takes no {call.keywords[0].arg}= in device code: it puts a space between "
            "values and ends the line"
        )
    if isinstance(called, types.BuiltinFunctionType | type) and called in vars(builtins).values():
        if called.__name__ in _DEVICE_BUILTINS:
            return None
        needs_memory = called is sorted or called in _HOST_CONTAINERS
        remedy = _NO_CONTAINERS if needs_memory else "write it with loops and operators"
        return f"{name} is not available in device code: {remedy}"
    if scalar_function(called) is not None:
        return None
    if isinstance(called, np.ufunc):
        return f"{name} is not available in a kernel; write it with operators and the math module"
    if isinstance(called, type):
        return None
    package = (getattr(called, "__module__", None) or "").partition(".")[0]
    owner = getattr(called, "__self__", None)
    if isinstance(owner, random.Random) or type(owner).__module__.startswith("numpy.random"):
        return (
            f"{name} is not available in a kernel: pass an array of random numbers, as of "
            "dp.random.default_rng()"
        )
    if package == "numpy":
        return f"{name} {_ON_ARRAYS}"
    if hasattr(called, "py_func"):
        if called.py_func is function or function in _reached(called.py_func):
            return f"{name} calls itself: recursion is not available in device code; write a loop"
        if hasattr(called, "device_function"):
            return (
                f"{name} is a function of arrays; assign {name}.device_function to a name and call "
                "that"
            )
        if hasattr(called, "options") and not type(called).__name__.startswith("Device"):
            return (
                f"{name} is a kernel, and only the host launches kernels: make it a dp.device_func"
            )
        return None
    if package == "dparray" and not _in_kernel_language(called):
        return f"{name} is a host function: call it before or after the kernel"
    if isinstance(called, types.FunctionType) and package not in _HOST_PACKAGES:
        return f"{name} is a Python function: decorate it with @dp.device_func"
    return None


def _in_kernel_language(called: Any) -> bool:
    return (getattr(called, "__module__", "") or "").startswith("dparray.kernel_api")
