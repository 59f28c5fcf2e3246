"""``dp.jit`` of derivatives: record the calls of a function twice, then replay them.

The arguments are traced arrays of a level that records: each call of a public function with one of
them is computed, and noted as a line of a straight program. If the second call records the same
program, later calls with arguments of the same shapes run the program alone, without a tape.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import get_ident
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from dparray import config
from dparray._array.ndarray import materialize, ndarray
from dparray._array.nodes import array_of_operation
from dparray._array.operands import OVERRIDE
from dparray._graph.ops import CONVERT
from dparray._language.references import UNASSIGNED, Reference, with_references
from dparray._placement import placement_of
from dparray.exceptions import GradientError
from dparray.gradients import traced
from dparray.gradients.public import dp
from dparray.gradients.traced import Level, Spec, Traced, check
from dparray.gradients.trees import flatten, unflatten

#: The programs of a function, one for each combination of shapes and numbers.
MAX_PROGRAMS = 32

_OPERATORS = {dp.add: "+", dp.subtract: "-", dp.multiply: "*", dp.divide: "/"}
_OF_SHAPES = frozenset({"shape", "ndim", "size", "result_type", "iscomplexobj", "isrealobj"})
_SIZED_BY_VALUES = frozenset(
    {
        *("nonzero", "argwhere", "flatnonzero", "compress", "extract", "trim_zeros", "repeat"),
        *("unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"),
        *("setdiff1d", "intersect1d", "union1d", "setxor1d", "ediff1d"),
    }
)


class Slot(NamedTuple):
    """The place of a recorded array in a line."""

    number: int


class Line(NamedTuple):
    """A recorded call: the function, its arguments with slots, and the slots of its results."""

    function: Any
    arguments: Any
    options: Any
    results: tuple[int, ...]
    is_single: bool


def not_replayable(reason: str) -> GradientError:
    """Return the error for a function whose calls cannot be replayed."""
    return GradientError(
        f"jit: a derivative is recorded and replayed, but {reason}; leave off dp.jit, or compile "
        "the inner function: dp.grad(dp.jit(f))"
    )


class Recording:
    """The calls of one execution of a function."""

    def __init__(self) -> None:
        self.level = Level(recording=self)
        self.lines: list[Line] = []
        self.inputs = 0
        self.count = 0

    def input(self, x: ndarray) -> Traced:
        """Return an argument, which must come before all calls."""
        self.inputs += 1
        return self._traced(x)

    def _traced(self, x: ndarray) -> Traced:
        self.count += 1
        return Traced(x, self.level, self.count - 1)

    def call(self, function: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
        """Compute a call, and record it."""
        name = getattr(function, "__name__", "")
        if function is dp.eval:
            self.lines.append(Line(function, self.template(tuple(args)), {}, (), False))
            return function(*self.plain(tuple(args)))
        if name in _SIZED_BY_VALUES or (name == "item_of" and self._has_mask(args[1])):
            raise not_replayable(f"the shape of the result of {name} depends on values")
        answer = function(*self.plain(tuple(args)), **self.plain(options))
        slots = self.template(tuple(args)), self.template(options)
        first = self.count
        if isinstance(answer, ndarray):
            made: Any = self._traced(answer)
        elif isinstance(answer, tuple | list) and all(isinstance(x, ndarray) for x in answer):
            items: list[Any] = [self._traced(x) for x in answer]
            made = type(answer)(*items) if hasattr(answer, "_fields") else type(answer)(items)
        elif name in _OF_SHAPES:
            return answer
        else:
            raise not_replayable(f"the result of {name} is a {type(answer).__name__} on the host")
        results = tuple(range(first, self.count))
        self.lines.append(Line(function, *slots, results, isinstance(answer, ndarray)))
        return made

    def _has_mask(self, key: Any) -> bool:
        """Return whether an index has a recorded array of Booleans."""
        keys = key if type(key) is tuple else (key,)
        return any(type(x) is Traced and x.dtype.kind == "b" for x in keys)

    def plain(self, x: Any) -> Any:
        """Return values without slots."""
        if type(x) is Traced and x._level is self.level:
            check(x)
            return x._value
        return _rebuilt(x, self.plain)

    def template(self, x: Any) -> Any:
        """Return values with slots instead of recorded arrays."""
        if type(x) is Traced and x._level is self.level:
            return Slot(x._origin)
        if getattr(x, "dtype", None) == np.bool_ and isinstance(x, np.ndarray):
            return x.copy()
        return _rebuilt(x, self.template)


def _rebuilt(x: Any, change: Callable[[Any], Any]) -> Any:
    kind = type(x)
    if kind is list or kind is tuple:
        return kind([change(each) for each in x])
    if kind is dict:
        return {key: change(each) for key, each in x.items()}
    return x


class Program:
    """The calls of a function of arrays, which return the same for equal shapes."""

    def __init__(self, recording: Recording, result: Any) -> None:
        leaves, self.structure = flatten(result)
        self.lines, self.inputs = recording.lines, recording.inputs
        self.returned = [recording.template(x) for x in leaves]
        self.shape_of_result = _description(unflatten(self.structure, [0] * len(leaves)), [])
        self.run: Callable[..., Any] | None = None

    def is_like(self, other: Program) -> bool:
        """Return whether another execution made the same calls, with the same constants."""
        mine, theirs = ([(*line, len(line)) for line in each.lines] for each in (self, other))
        return (
            self.shape_of_result == other.shape_of_result
            and _is_same(mine, theirs)
            and _is_same(self.returned, other.returned)
        )

    def compile(self) -> None:
        """Write the calls as a Python function of the inputs."""
        needed = {x.number for x in self.returned if type(x) is Slot}
        kept: list[tuple[Line, list[int]]] = []
        for line in reversed(self.lines):
            reads = set(_slots_in((line.arguments, line.options)))
            is_needed = not needed.isdisjoint(line.results)
            if not (is_needed or (line.function is dp.eval and reads <= needed)):
                continue
            last = sorted((reads | set(line.results)) - needed - set(range(self.inputs)))
            kept.append((line, last))
            needed |= reads
        constants: list[Any] = []
        heads = ", ".join(f"t{number}" for number in range(self.inputs))
        text = [f"def program({heads}):"]
        for line, last in reversed(kept):
            names = ", ".join(f"t{number}" for number in line.results)
            target = names if line.is_single else f"[{names}]"
            text.append(f"    {f'{target} = ' if names else ''}{_text(line, constants)}")
            text += [f"    del {', '.join(f't{number}' for number in last)}"] if last else []
        text.append(f"    return [{', '.join(_written(x, constants) for x in self.returned)}]")
        space = {f"c{number}": value for number, value in enumerate(constants)}
        exec(compile("\n".join(text), "<replayed derivative>", "exec"), space)
        self.run = space["program"]

    def __call__(self, arrays: Sequence[ndarray]) -> Any:
        """Return the result for arrays of the recorded shapes."""
        assert self.run is not None
        made = self.run(*arrays)
        # A result that depends on no argument is a constant of the program.
        pairs = zip(self.returned, made, strict=True)
        results = [x if type(slot) is Slot and slot.number >= self.inputs else _own(x)
                   for slot, x in pairs]  # fmt: skip
        return unflatten(self.structure, results)


def _own(x: Any) -> Any:
    return x.copy() if isinstance(x, ndarray) else x


def _slots_in(x: Any) -> list[int]:
    if type(x) is Slot:
        return [x.number]
    values = x.values() if type(x) is dict else x if type(x) in (list, tuple) else ()
    return [number for each in values for number in _slots_in(each)]


def _text(line: Line, constants: list[Any]) -> str:
    sign, arguments = _OPERATORS.get(line.function), line.arguments
    if sign and len(arguments) == 2 and not line.options:
        return f" {sign} ".join(_written(each, constants) for each in arguments)
    given = [_written(each, constants) for each in arguments]
    given += [f"{key}={_written(each, constants)}" for key, each in line.options.items()]
    return f"{_written(line.function, constants)}({', '.join(given)})"


def _written(x: Any, constants: list[Any]) -> str:
    """Return the source of an argument."""
    if type(x) is Slot:
        return f"t{x.number}"
    if _slots_in(x):
        if type(x) is dict:
            return f"{{{', '.join(f'{k!r}: {_written(v, constants)}' for k, v in x.items())}}}"
        inner = "".join(f"{_written(each, constants)}, " for each in x)
        return f"({inner})" if type(x) is tuple else f"[{inner}]"
    for number, known in enumerate(constants):
        if known is x:
            return f"c{number}"
    constants.append(x)
    return f"c{len(constants) - 1}"


def _is_same(a: Any, b: Any) -> bool:
    """Return whether two constants are the same, or have equal values."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, ndarray | np.ndarray):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        first, second = (x.asnumpy() if isinstance(x, ndarray) else x for x in (a, b))
        return bool(np.array_equal(first, second, equal_nan=a.dtype.kind in "fc"))
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(_is_same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_is_same(a[key], b[key]) for key in a)
    if isinstance(a, Spec):
        return (a.shape, a.dtype) == (b.shape, b.dtype)
    if isinstance(a, float) and a != a:
        return b != b
    return bool(a == b)


def _description(tree: Any, arrays: list[ndarray]) -> Any:
    """Return the structure of arguments with shapes and numbers; the arrays are appended."""
    kind = type(tree)
    if kind is ndarray:
        arrays.append(tree)
        return tree.dtype, tree.shape, tree.queue, tree.usm_type
    if kind in (float, int, bool, str, complex) or tree is None:
        return kind, tree
    if isinstance(tree, tuple | list):
        return kind, tuple([_description(each, arrays) for each in tree])
    if isinstance(tree, dict):
        return kind, tuple([(key, _description(each, arrays)) for key, each in tree.items()])
    leaves, _ = flatten(tree)
    if len(leaves) == 1 and leaves[0] is tree:
        return kind, tree
    static = repr({k: v for k, v in vars(tree).items() if not isinstance(v, ndarray)})
    return kind, static, tuple([_description(each, arrays) for each in leaves])


class Replayed:
    """A derivative whose calls are recorded twice, and then replayed.

    ``dp.jit(dp.value_and_grad(f))`` makes one.

    Args:
        watches: whether names and arrays that the function refers to may change.

    Attributes:
        programs: the number of recorded programs.
    """

    def __init__(self, function: Callable[..., Any], watches: bool = True) -> None:
        self.__wrapped__, self._watches = function, watches
        self.__name__ = getattr(function, "__name__", "function")
        self.__doc__ = function.__doc__
        self._programs: OrderedDict[Any, Program] = OrderedDict()
        self._captured: Captured | None = None

    def __repr__(self) -> str:
        return f"<replayed derivative of {self.__name__}>"

    @property
    def programs(self) -> int:
        """The number of recorded programs."""
        return len(self._programs)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call the function, or replay its calls."""
        arrays: list[ndarray] = []
        try:
            key = _description((args, options), arrays), config.zero_wins
            known = self._programs.get(key)
        except TypeError as error:  # not hashable
            if self._is_differentiated(args, options):
                return self.__wrapped__(*args, **options)
            raise not_replayable(
                f"an argument cannot be compared with later ones: {error}"
            ) from None
        if self._captured is not None and not self._captured.is_current():
            self._programs.clear()
            self._captured = known = None
        if known is not None and known.run is not None:
            return known(arrays)
        if not config.lazy:  # without pending copies, writes to arrays are not seen
            return self.__wrapped__(*args, **options)
        if self._captured is None and self._watches:
            self._captured = Captured(self.__wrapped__)
        program, result = self._record(args, options)
        if known is None:
            self._programs[key] = program
            if len(self._programs) > MAX_PROGRAMS:
                self._programs.popitem(last=False)
        elif not known.is_like(program):
            raise not_replayable(
                "two calls of it made different calls or used different constants, such as random "
                "numbers"
            )
        else:
            program.compile()
            self._programs[key] = program
        return result

    @staticmethod
    def _is_differentiated(args: Any, options: Any) -> bool:
        return any(hasattr(type(x), OVERRIDE) for x in flatten((args, options))[0])

    def _record(self, args: Any, options: Any) -> tuple[Program, Any]:
        recording = Recording()
        leaves, structure = flatten((args, options))
        given, named = unflatten(
            structure, [recording.input(x) if type(x) is ndarray else x for x in leaves]
        )
        traced.recordings.append(get_ident())
        try:
            with recording.level:
                result = self.__wrapped__(*given, **named)
                outs, of_result = flatten(result)
                program = Program(recording, result)
                values = [_own(recording.plain(x)) for x in outs]
            if self._captured is not None and not self._captured.is_current():
                raise not_replayable("it writes to an array or a name outside of it")
        finally:
            traced.recordings.remove(get_ident())
        return program, unflatten(of_result, values)


def _pending_copy(x: ndarray) -> ndarray:
    return array_of_operation(CONVERT, (x,), (x.dtype, x.dtype), x.shape, placement_of(x))


class Captured:
    """The values that a function refers to, which a replay assumes to be unchanged.

    Attributes:
        references: names, items and attributes with their values, also of the functions it calls.
        readers: each array among them with a pending copy, which dparray computes before a write.
    """

    def __init__(self, function: Any) -> None:
        self.references: list[Reference] = []
        self.readers: list[tuple[ndarray, ndarray]] = []
        self._seen: dict[int, Any] = {}
        self._function(function)

    def is_current(self) -> bool:
        """Return whether no name was assigned and no array was written."""
        for read, name, value in self.references:
            if read(name, UNASSIGNED) is not value:
                return False
        for at, (x, reader) in enumerate(self.readers):
            if reader.is_pending:
                continue
            # A write computes the copy first, and so does a kernel that only might write `x`.
            if reader.asnumpy().tobytes() != x.asnumpy().tobytes():
                return False
            self.readers[at] = x, _pending_copy(x)
        return True

    def _function(self, function: Any) -> None:
        self._value(getattr(function, "__self__", None))
        function = getattr(function, "__func__", getattr(function, "py_func", function))
        if not isinstance(function, FunctionType) or id(function) in self._seen:
            return
        self._seen[id(function)] = function
        first = len(self.references)
        with_references(function, self.references, lambda value: value)
        if function.__module__ is not None and function.__module__.startswith("dparray."):
            # dparray's functions refer to the user's by captured variables alone.
            cells = function.__closure__ or ()
            mine = [
                x for x in self.references[first:] if any(x.value is c for c in map(_cell, cells))
            ]
            self.references[first:] = mine
        for reference in self.references[first:]:
            self._value(reference.value)

    def _value(self, x: Any) -> None:
        kind = type(x)
        if kind in (int, float, bool, str, complex) or x is None or id(x) in self._seen:
            return
        if isinstance(x, FunctionType) or hasattr(x, "__func__") or hasattr(x, "py_func"):
            self._function(x)
            return
        self._seen[id(x)] = x
        if isinstance(x, ndarray):
            materialize(x)  # An array that is pending has no memory, whose writes are seen.
            self.readers.append((x, _pending_copy(x)))
        elif kind is dict:
            self._members(x.get, x)
        elif kind in (list, tuple):
            items = dict(enumerate(x))
            self._members(lambda at, default: x[at] if at < len(x) else default, items)
        elif (
            not isinstance(x, ModuleType | type | np.generic)
            and hasattr(x, "__dict__")
            and not (kind.__module__ or "").startswith(("dparray", "numpy", "dpctl"))
        ):
            self._members(vars(x).get, vars(x))

    def _members(self, read: Any, members: Any) -> None:
        for name, value in list(members.items()):
            self.references.append(Reference(read, name, value))
            self._value(value)


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return UNASSIGNED
