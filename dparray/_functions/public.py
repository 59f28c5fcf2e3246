"""Public functions: one record for each, which the wrapper of its calls reads.

``@public(small=np.sum, takes=("axis", "keepdims"))`` adds these steps before the body of a
function:

1. the fast path: if the parameters that NumPy does not accept have their defaults, ``small``
computes small arrays immediately (``call_small`` in `_array/_fastpath_functions.c`);
2. the override: an operand or option of another class with ``__dparray_function__`` handles the
call, with the options that do not have their defaults;
3. the operands are converted to arrays, on one queue if there are several;
4. ``out`` is checked to be an array on that queue.

With ``converts=False`` the function itself does the last two steps. :func:`with_options` adds the
options of NumPy's ufuncs.

:func:`guard` wraps the functions that users call; functions call each other without it. Any invalid
argument without a message of its own, such as a string for an axis, fails inside with a Python or
NumPy error. That error leaves the namespace as an :class:`~dparray.exceptions.ArgumentError` that
names the function and its arguments, with the original error as its cause. Keywords that a function
does not have are translated before the call: the standard takes most arguments by position only,
but NumPy's documentation names them, as in ``dp.allclose(a=x, b=y)``. NumPy arguments that are
omitted on purpose raise an error with the reason.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cached_property
from types import FunctionType, TracebackType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from dparray import _dtypes, exceptions
from dparray._array.host_fastpath import call_small, small_function
from dparray._array.ndarray import SEQUENCES, ndarray
from dparray._array.operands import (
    OVERRIDE,
    called_apart,
    check_array,
    check_arrays,
    check_out,
    dispatch_override,
    on_queue_of,
    overriding,
)
from dparray._functions import single_precision
from dparray._functions.missing_names import BY_POSITION, FORMER, PARAMETERS, parameters_of
from dparray._functions.options import (
    DEFAULT_CASTING,
    DEFAULT_ORDER,
    apply_for_two_results,
    apply_with_options,
)
from dparray._hooks import note_call, recent
from dparray.exceptions import (
    ArgumentError,
    DparrayError,
    ExecutionPlacementError,
    HostConversionError,
)

P = ParamSpec("P")
R = TypeVar("R")

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_MISSING = inspect.Parameter.empty
_BY_KEYWORD = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

#: NumPy modules that NumPy imports lazily.
_NAMESPACES = {
    "dparray.fft": "fft",
    "dparray.linalg": "linalg",
    "dparray.random": "random",
    "dparray.testing": "testing",
}


class PublicFunction:
    """The record of a public function.

    Attributes:
        function: the function, with the steps of :func:`public`.
        arrays: the names of its array parameters.
        index: the parameter whose values are indices, a mask or counts.
        converts: whether operands become arrays and ``out`` is checked.
        operation: the row of a table, or the contraction, that stands for it in plans, if any.
        fast: its fast path, if it has one.
        general: the function without the fast path.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        arrays: Sequence[str] = (),
        index: str = "",
        converts: bool = True,
        operation: Any = None,
    ) -> None:
        self.function = self.general = function
        self.arrays, self.index, self.converts = tuple(arrays), index, converts
        self.operation, self.fast = operation, None

    def set_fast(
        self,
        small: Callable[..., Any] | None,
        takes: Sequence[str] = (),
        when: Callable[..., bool] | None = None,
        mode: str = "plain",
    ) -> None:
        """Let a NumPy function compute small arrays; for the arguments see :func:`public`."""
        if small is None or small_function is None:
            return
        named = {key: p for key, p in self.parameters.items() if p.kind not in _VARIADIC}
        passed = (*self.arrays, *takes)
        special = "dtype" if mode in ("create", "convert") else self.index
        self.fast = small_function(
            small,
            when,
            tuple(named),
            tuple(p.default for p in named.values()),
            _MISSING,
            tuple(passed.index(key) if key in passed else -1 for key in named),
            sum(p.kind in BY_POSITION for p in named.values()),
            passed.index(special) if special in passed else -1,
            mode,
        )

    def wrapped(self) -> Any:
        """Return the function with its steps, as other functions of dparray call it."""
        if self.fast is not None or self.general is not self.function:
            call = self.general if self.fast is None else _calling(self.fast, self.general)
            self.function = named_after(self.function, call)
        _records[self.function] = self
        return self.function

    @cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """Its parameters by name."""
        return inspect.signature(self.function).parameters

    @cached_property
    def by_position(self) -> list[str]:
        """The names of the parameters that may be passed by position."""
        return [key for key, p in self.parameters.items() if p.kind in BY_POSITION]

    @cached_property
    def keywords(self) -> frozenset[str]:
        """The keywords that it has itself."""
        return frozenset(key for key, p in self.parameters.items() if p.kind in _BY_KEYWORD)

    @cached_property
    def numpy_function(self) -> Callable[..., Any] | None:
        """The NumPy function of its name."""
        function = self.function
        if "." in function.__qualname__:
            return None
        module = _NAMESPACES.get(".".join(function.__module__.split(".")[:2]))
        namespace = np if module is None else getattr(np, module)
        theirs = getattr(namespace, function.__name__, None)
        return theirs if callable(theirs) else None

    @cached_property
    def numpy_parameters(self) -> tuple[tuple[str, ...], Mapping[str, Any]]:
        """The positional parameters of the NumPy function, and the defaults of all."""
        return ((), {}) if self.numpy_function is None else parameters_of(self.numpy_function)

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Its parameter names by NumPy's, where they differ."""
        by_position, theirs = self.numpy_parameters
        return {
            numpy_name: own
            for numpy_name, own in zip(by_position, self.by_position, strict=False)
            if numpy_name not in self.parameters and own not in theirs
        }

    def translated(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a call with NumPy's keywords replaced by dparray's.

        Raises:
            ArgumentError: an argument is omitted on purpose.
        """
        theirs = self.numpy_parameters[1]
        own: dict[str, Any] = {}
        for name, value in kwargs.items():
            if name in self.parameters:
                own[name] = value
            elif name in self.names:
                own[self.names[name]] = value
            elif name in theirs and _is_default(value, theirs[name]):
                continue
            elif name in PARAMETERS and (name in theirs or (theirs and name in FORMER)):
                raise ArgumentError(
                    f"{self.function.__name__}: {name}= is not supported: {PARAMETERS[name]}"
                )
            else:
                own[name] = value
        positional = list(args)
        for parameter in list(self.parameters.values())[len(args) :]:
            if parameter.kind is not parameter.POSITIONAL_ONLY or parameter.name not in own:
                break
            positional.append(own.pop(parameter.name))
        return tuple(positional), own


def _is_default(value: Any, default: Any) -> bool:
    is_plain = isinstance(value, str | int | float) and type(value) is type(default)
    return value is default or (is_plain and value == default)


#: The records of the functions made public.
_records: dict[Callable[..., Any], PublicFunction] = {}


def public(
    *,
    operands: Sequence[str] = (),
    index: str = "",
    small: Callable[..., Any] | None = None,
    takes: Sequence[str] = (),
    when: Callable[..., bool] | None = None,
    mode: str = "plain",
    converts: bool = True,
    operation: Any = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function public: add the fast path, the override, and checks of its arguments.

    Args:
        operands: the names of the array parameters; the first parameter by default.
        index: the parameter whose values are indices, a mask or counts, which may be a NumPy array.
        small: the NumPy function for small arrays; without it there is no fast path.
        takes: the names of the parameters that are passed to ``small`` after the operands.
        when: returns whether ``small`` may have these arguments; called with them, of which the
            first is an array.
        mode: what ``small`` does, if it does not return few values of few elements:
            ``"broadcast"``: its arguments broadcast, so that its result may be large;
            ``"join"``: its first argument is a sequence of arrays, which the function itself
            checks;
            ``"view"``: it returns a view of the first argument;
            ``"fold biuf"``: it reduces over ``axis``, contiguous elements of these kinds fast;
            ``"convert"``: it converts the first argument to a ``dtype``;
            ``"create"``: it returns a new array, on the default device; its first argument is the
            shape, and no argument is an array.
        converts: whether operands become arrays and ``out`` is checked.
        operation: the row of a table, or the contraction, that stands for the function in plans.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        record = PublicFunction(function, operands, index, converts, operation)
        parameters = record.parameters
        arrays = record.arrays = record.arrays or (next(iter(parameters)),)
        function.__doc__ = _with_errors(function.__doc__, parameters, arrays)
        record.set_fast(small, takes, when, mode)
        if mode not in ("join", "create"):
            record.general = _with_operands(function, record)
        return record.wrapped()

    return decorate


#: The parameters for one and for two results: by position and by name; how they are passed on.
_OUTPUTS = {
    1: ("/, out: ndarray | None = None", "", "out", "ndarray"),
    2: (
        "out1: ndarray | None = None, out2: ndarray | None = None, /",
        "out: tuple[ndarray | None, ndarray | None] | None = None, ",
        *("(out1, out2), out", "tuple[ndarray, ...]"),
    ),
}


def ufunc(
    name: str,
    parameters: Sequence[str],
    compute: Callable[..., Any],
    *,
    results: int = 1,
    into: Callable[..., Any] | None = None,
    takes_sequences: bool = True,
    operation: Any = None,
) -> Any:
    """Return a public function of elements that has the options of NumPy's ufuncs.

    Args:
        name: its name in the namespace.
        parameters: the names of its operands.
        compute: the function that computes one result, or a tuple of two.
        results: their number.
        into: the function for ``out=``; derived from ``compute`` by default.
        takes_sequences: whether ``compute`` converts sequences itself.
        operation: its row in the table of operations.
    """
    conditions = ["where is True and dtype is None and casting is CASTING and order is ORDER"]
    if not takes_sequences:
        conditions += [f"type({x}) not in SEQUENCES" for x in parameters]
    conditions += ["out1 is None", "out2 is None"] * (results == 2)
    by_position, by_name, outputs, result = _OUTPUTS[results]
    own_name, operands = name.rpartition(".")[2], ", ".join(parameters)
    # The frame and the signature have the function's names.
    text = f"""
def {own_name}(
    {": Any, ".join(parameters)}: Any, {by_position}, *, {by_name}where: Any = True,
    dtype: Any = None, casting: str = CASTING, order: str = ORDER, subok: bool = True,
) -> {result}:
    if {" and ".join(conditions)}:
        if out is None:
            return compute({operands})
        if into is not None and type(out) is not tuple:
            return into({operands}, out=out)
    return general(({operands},), {outputs}, where, dtype, casting, order)
"""
    general = apply_with_options if results == 1 else apply_for_two_results
    scope = {
        "compute": compute,
        "into": into,
        "general": functools.partial(general, name, tuple(parameters), compute),
        "CASTING": DEFAULT_CASTING,
        "ORDER": DEFAULT_ORDER,
        "SEQUENCES": SEQUENCES,
        "__name__": __name__,
    }
    exec(compile(text, f"<dparray {name}>", "exec"), scope)
    function: Any = scope[own_name]
    _records[function] = PublicFunction(function, parameters, operation=operation)
    return function


def with_options(results: int = 1) -> Callable[[Callable[..., Any]], Any]:
    """Add the options of NumPy's ufuncs to a function of elements, and its fast path.

    Args:
        results: how many arrays it returns. For two, ``out=`` is a tuple, in which ``None`` means a
            new array; they may be positional arguments, too.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        name, code = function.__name__, function.__code__
        parameters = code.co_varnames[: code.co_argcount]
        made = ufunc(name, parameters, function, results=results, takes_sequences=False)
        made.__doc__, made.__module__ = function.__doc__, function.__module__
        record = _records[made]
        numpys = record.numpy_function
        if results == 1 and isinstance(numpys, np.ufunc):
            record.set_fast(numpys, mode="broadcast")
        return record.wrapped()

    return decorate


def _with_errors(text: str | None, names: Container[str], arrays: Sequence[str]) -> str | None:
    """Return a docstring with the errors that functions with such parameters have in common."""
    added = ["ExecutionPlacementError: the arrays are on different queues."] * (len(arrays) > 1)
    added += ["AxisError: an axis is out of range."] * ("axis" in names or "axes" in names)
    before, title, example = (text or "").rpartition("Example:\n")
    if not (title and added):
        return text
    indent = before[before.rfind("\n") + 1 :]
    before = before.rstrip() + "\n" if "Raises:\n" in before else f"{before}Raises:\n"
    lines = "".join(f"{indent}    {error}\n" for error in added)
    return f"{before}{lines}\n{indent}{title}{example}"


def operation_of(function: Callable[..., Any]) -> Any:
    """Return the operation that stands for a public function in plans; ``None`` without one."""
    record = _records.get(function)
    return None if record is None else record.operation


def named_after(function: Callable[..., Any], wrapper: Any) -> Any:
    """Return a wrapper as a function; its frame has the name, where profiles and events look."""
    wrapper.__code__ = wrapper.__code__.replace(co_name=function.__name__)
    return functools.update_wrapper(wrapper, function)


def _calling(fast: Any, general: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        result = call_small(fast, args, kwargs)
        return general(*args, **kwargs) if result is None else result

    return call


def _with_operands(function: Callable[..., Any], record: PublicFunction) -> Callable[..., Any]:
    """Return a function that hands over to the class of an operand, or converts its operands."""
    arrays, index, parameters = record.arrays, record.index, record.parameters
    defaults = {key: p.default for key, p in parameters.items()}
    by_position = record.by_position
    count, has_out = len(arrays), "out" in parameters
    arrays_come_first = by_position[:count] == list(arrays)
    first_option = by_position.index("out") if "out" in by_position else len(parameters) + 1
    index_at = by_position.index(index) if index else 0

    def call(*args: Any, **kwargs: Any) -> Any:
        # The usual call needs nothing: arrays of one queue by position, and no output.
        if (
            arrays_come_first
            and count <= len(args) <= first_option
            and type(args[0]) is ndarray
            and not (kwargs and ((has_out and "out" in kwargs) or index in kwargs))
            and (not kwargs or overriding(kwargs.values()) is None)
            and not (index and isinstance(args[min(index_at, len(args) - 1)], np.ndarray))
        ):
            queue = args[0].queue
            for other in args[1:count] if count > 1 else ():
                if type(other) is not ndarray or other.queue is not queue:
                    break
            else:
                return function(*args, **kwargs)
        if (
            arrays_come_first
            and len(args) == count
            and not kwargs
            and hasattr(type(args[0]), OVERRIDE)
        ):
            return dispatch_override(function, args)
        return in_general(args, kwargs)

    def in_general(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        arguments = {**dict(zip(by_position, args, strict=False)), **kwargs}
        values = {key: arguments.get(key, defaults[key]) for key in arrays}
        is_repeated = len(arguments) < min(len(args), len(by_position)) + len(kwargs)
        if is_repeated or any(x is _MISSING for x in values.values()):
            return function(*args, **kwargs)  # which raises the error
        if index and isinstance(arguments.get(index), np.ndarray):
            indexed = next(name for name in arrays if name != index)
            arguments[index] = on_queue_of(values[indexed], arguments[index])
            values = {key: arguments.get(key, x) for key, x in values.items()}
        more = args[len(by_position) :]
        if overriding((*arguments.values(), *more)) is not None:
            options = {
                key: value
                for key, value in arguments.items()
                if key not in arrays and value is not defaults.get(key, _MISSING)
            }
            return dispatch_override(function, (*values.values(), *more), **options)
        if record.converts:
            values = _converted(function.__name__, values)
            if has_out and arguments.get("out") is not None:
                check_out(function.__name__, tuple(values.items()), arguments["out"])
        arguments |= {
            key: x for key, x in values.items() if key in arguments or x is not defaults[key]
        }
        in_order = [arguments.pop(key) for key in by_position[: len(args)]]
        return function(*in_order, *more, **arguments)

    return call


def _converted(name: str, values: Mapping[str, Any]) -> dict[str, ndarray]:
    """Return operands as arrays, on one queue if there are several."""
    if len(values) == 1:
        ((key, x),) = values.items()
        return {key: check_array(name, key, x)}
    return dict(zip(values, check_arrays(name, *values.items()), strict=True))


_STRAY = (
    *(ArithmeticError, AssertionError, AttributeError, BufferError, LookupError),
    *(NotImplementedError, RecursionError, TypeError, ValueError),
)
#: Clear as they are: indices out of range, overflowing numbers, singular matrices.
_MEANT = (DparrayError, IndexError, OverflowError)
_INSIDE = ("dparray", "numpy", "dpnp", "dpctl", "contextlib", "functools")

#: Functions that are called often and check all of their arguments.
_CHECKED = frozenset(
    {"all", "any", "argmax", "argmin", "matmul", "mean", "prod", "ptp", "std", "sum", "var"}
    | {"amax", "amin", "eval", "max", "min"}
)
_CHECKED_MODULES = ("dparray._functions.elementwise", "dparray._kernel", "dparray.kernel_api")


def guard(owner: Any, names: Iterable[str] | None = None) -> None:
    """Wrap the functions of a module or class so that only dparray errors leave them.

    Args:
        owner: a module or a class; only functions that dparray defines are wrapped.
        names: the names of the functions; all public ones by default.
    """
    guarded: dict[FunctionType, Any] = {}
    for name in list(vars(owner)) if names is None else names:
        value = vars(owner).get(name)
        if not name.startswith("_") and name not in _CHECKED and _lets_errors_out(value):
            setattr(owner, name, guarded.get(value) or guarded.setdefault(value, _guarded(value)))


def published(value: Any) -> Any:
    """Return a lazily imported member of the namespace, wrapped and with its public name."""
    if _lets_errors_out(value):
        value = _guarded(value)
    if callable(value) and getattr(value, "__module__", "").startswith("dparray._"):
        value.__module__ = "dparray"
    return value


def _lets_errors_out(value: Any) -> bool:
    return (
        isinstance(value, FunctionType)
        and value.__module__.startswith("dparray")
        and not value.__module__.startswith(_CHECKED_MODULES)
    )


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    is_single = function.__name__ in single_precision.NAMES
    record = _records.get(function) or PublicFunction(function)
    fast, general = record.fast, record.general

    def call(*args: Any, **kwargs: Any) -> Any:
        if fast is not None:
            result = call_small(fast, args, kwargs)
            if result is not None:
                return result
        mark = recent[-1] if recent else None
        if kwargs and not kwargs.keys() <= record.keywords:
            args, kwargs = record.translated(args, kwargs)
        try:
            # Without this flag, each call on small arrays would cost a twentieth more.
            may_be_bfloat16 = is_single and _dtypes.is_bfloat16_used
            if may_be_bfloat16 and single_precision.takes_bfloat16(args, kwargs):
                return single_precision.in_single(function, args, kwargs)
            result = general(*args, **kwargs)
            if recent and recent[-1] is not mark:
                note_call(function.__name__, mark, args[:1] if result is None else result)
            return result
        except HostConversionError:
            taken = dispatch_override(function, args, **kwargs)
            if taken is NotImplemented:
                raise
            return taken
        except ExecutionPlacementError:
            result = called_apart(function, args, kwargs)
            if result is NotImplemented:
                raise
            return result
        except _MEANT:
            raise
        except _STRAY as error:
            if not _came_from_inside(error):
                raise
            raise ArgumentError(_message(function, error, args, kwargs)) from error
        except MemoryError as error:
            if isinstance(error, DparrayError):
                raise
            text = _message(function, error, args, kwargs)
            text = text.replace("invalid argument", "an argument is too large", 1)
            raise exceptions.MemoryError(text) from error

    return named_after(function, call)


def _came_from_inside(error: BaseException) -> bool:
    """Return whether an error is neither about the call itself nor raised by a user function."""
    if type(error).__name__ == "LinAlgError":
        return False
    step: TracebackType | None = error.__traceback__
    step = None if step is None else step.tb_next
    while step is not None and step.tb_frame.f_globals.get("__name__") == __name__:
        step = step.tb_next
    if step is None:  # the arguments do not match the signature; Python's message is specific
        return False
    while step is not None:
        module = str(step.tb_frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] not in _INSIDE:
            return False
        step = step.tb_next
    return True


def _message(
    function: Callable[..., Any], error: BaseException, args: Any, kwargs: dict[str, Any]
) -> str:
    name = function.__name__
    text = str(error) or type(error).__name__
    if text.startswith(f"{name}: "):
        return text
    try:
        arguments = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:
        arguments = kwargs
    shown = ", ".join(f"{key}={_shown(value)}" for key, value in arguments.items() if key != "self")
    return f"{name}: invalid argument ({text}); called with: {shown}"


def _shown(value: Any) -> str:
    """Describe an argument briefly, without computing or copying anything."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is not None and dtype is not None:
        return f"{type(value).__name__} of shape {shape} and dtype {dtype}"
    if isinstance(value, str | int | float | complex | type(None)):
        return f"{value!r:.60}"
    if isinstance(value, list | tuple) and len(value) < 5:
        inside = ", ".join(map(_shown, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return f"a {type(value).__name__}"
