"""``dp.jit``: functions compiled for the types of their arguments."""

from __future__ import annotations

import ast
import contextlib
import inspect
import math
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import FunctionType, MethodType
from typing import Any, overload

import numpy as np

from dparray import config
from dparray._array.ndarray import ndarray
from dparray._array.operands import dispatch_override, is_shareable, shared
from dparray._driver import is_queue, traits_of
from dparray._dtypes import is_bfloat16
from dparray._evaluate import implementations
from dparray._functions.other_libraries import travels_by_value
from dparray._jit.checks import check_ranges, checked_source
from dparray._jit.driver import (
    MAX_NEST_ELEMENTS,
    MAX_TASK_ITERATIONS,
    Driver,
    NativeRegion,
    Nest,
    contains_prange,
    has_array_code,
    stores_in_place,
    walked_lines,
    walks_elements,
)
from dparray._jit.host_code import HostCode
from dparray._jit.inference import (
    UNKNOWN,
    Inference,
    Items,
    Value,
    is_array,
    type_of,
)
from dparray._jit.literals import check_fit, check_literals, parameters_in_bounds
from dparray._jit.loop_forms import calls_slow_functions, other_loops, remarks
from dparray._jit.regions import NativeCode, ParallelRegion, launcher
from dparray._jit.source import Source, copied, prange, python_function_of
from dparray._jit.views import host_view, orders_of, result_of
from dparray._language.references import UNASSIGNED, Reference
from dparray._placement import common_placement
from dparray._runtime import fallback
from dparray.device import Device, describe_queue, queue_of, use_device
from dparray.exceptions import (
    DTypeError,
    HostConversionError,
    KernelArgumentError,
    KernelCompileError,
)

__all__ = ["jit", "prange"]

#: Up to this many elements in all arguments together, array code is one native region.
MAX_NATIVE_ELEMENTS = 1 << 16

#: The same for code that stores into arrays alone, element by element, of which the threads share
#: each statement; less with functions of which kernels compute vectors.
MAX_STORES, MAX_SLOW_STORES = 1 << 24, 1 << 18

_PLACEMENT_KEYWORDS = frozenset({"device", "sycl_queue", "usm_type"})
_NUMBERS = (bool, int, float, complex, np.generic)
_OPTIONS = ("fastmath", "parallel", "cache", "inline")
# Options of Numba and numba-dpex that have no effect here.
_ACCEPTED = ("nopython", "nogil", "error_model", "boundscheck", "debug", "forceobj", "looplift")


class Plan:
    """How a function runs for arguments of one signature.

    Attributes:
        labels: the types, as strings.
        reason: the reason for the way in which the function, or part of it, runs.
        returns_number: whether the result is a Python number.
        native: the function as one native region, after it was compiled.
        always_native: the same, if every call runs it, whatever the values of its arguments.
        driver: the function split into regions, after it was needed.
    """

    def __init__(self, function: JitFunction, queue: Any, arguments: Sequence[Any]) -> None:
        source = function._read()
        self.source = source
        self.options = function.options
        self.labels = tuple(map(_label, arguments))
        parameters = dict(zip(function._parameters, map(type_of, arguments), strict=True))
        self.types = Inference(source.definition, parameters, source.names)
        for callee, _ in self.types.callees.values():
            source.depends_on([] if callee is None else callee.references)
        result = self.types.result
        self.returns_number = isinstance(result, Value) and result.is_weak
        self.orders = orders_of(function._parameters, arguments)
        self.queue = queue
        self.native: HostCode | None = None
        self.always_native: HostCode | None = None
        self.driver: Driver | None = None
        self.refusal: KernelCompileError | None = None
        self._lock = threading.RLock()
        tree = copied(source.definition)
        tree.args.defaults = []
        has_prange = contains_prange(source, tree)
        #: With errors of its loops.
        self.split = Driver(source, self.types, self.options) if has_prange else None
        self.code = NativeCode(source, tree, self.types, self.options)
        if self.code.types.result is not result:  # by arrays in place of lists
            result = self.code.types.result
            self.returns_number = isinstance(result, Value) and result.is_weak
        self.in_cpu = traits_of(queue).shares_memory
        has_arrays = _has_arrays(self.types)
        loop = walks_elements(source, source.definition, self.types)
        self.walks = loop is not None
        self.lines = walked_lines(source, source.definition, self.types)
        check_literals(source, self.types)
        check_ranges(source, self.types)
        bounded = parameters_in_bounds(source, self.types)
        self.bounds = [(function._parameters.index(name), *rest) for name, *rest in bounded]
        self.is_native = self.may_be_native = False
        if not self.in_cpu and (has_arrays or any(isinstance(x, ndarray) for x in arguments)):
            self.reason = "the device is not a CPU, so nothing runs on the host in its memory"
        elif has_prange:
            self.reason = "its prange loops are regions"
            kernels = [each for each in self.code.loops if not each.is_native_in(self.types)]
            others = has_placement(tree) or config.debug
            if not (others or has_array_code(source, source.definition, self.types)):
                if kernels and all(each.is_launched for each in kernels):
                    with contextlib.suppress(KernelCompileError):
                        self.native = self.always_native = self.code.compiled(self.orders)
                self.is_native = not kernels or self.native is not None
            self.may_be_native, self.walks = self.is_native, False
            if self.is_native:
                self.reason = "its prange loops run on the threads of the device"
        elif self.walks or not has_arrays:
            self.is_native = self.may_be_native = True
            self.reason = "it loops over elements" if self.walks else "it has no arrays"
        elif has_placement(tree):
            self.reason = "its creation functions choose a placement"
        elif called := self._called_loop():
            self.is_native = self.may_be_native = True
            self.reason = f"it calls {called}, which loops over elements"
        else:
            self.may_be_native = True
            self.reason = "array code: native for small arrays, else dparray's operations"
        if self.code.refused is not None:
            self.is_native = self.may_be_native = False
            self.reason = "it has a text or a power that only Python computes"

    def _called_loop(self) -> str:
        """Return the name of a compiled function that is called with arrays and loops over their
        elements.

        Such a loop runs on the calling thread; kernels before and after it would be waited for.
        """
        for node in ast.walk(self.source.definition):
            function = self.source.resolve(node.func) if isinstance(node, ast.Call) else None
            if not isinstance(node, ast.Call) or not isinstance(function, JitFunction):
                continue
            source = function._read()
            if contains_prange(source, source.definition):
                return ""
            given = dict(zip(function._parameters, map(self.types.of, node.args), strict=False))
            given |= {each.arg: self.types.of(each.value) for each in node.keywords if each.arg}
            types = Inference(source.definition, given, source.names)
            loop = walks_elements(source, source.definition, types)
            if loop is not None and any(map(is_array, given.values())):
                return function.__name__
        return ""

    def runs_native(self, size: int, arguments: Sequence[Any]) -> bool:
        """Return whether a call with these arguments of ``size`` elements is one native region."""
        if self.is_native:
            return True
        if not self.may_be_native or self.refusal is not None or _are_implemented():
            return False
        if size <= self.most_elements:
            return True
        if not self.lines:
            return False
        return self._line_size(arguments, self.lines) <= self.most_elements

    @cached_property
    def most_elements(self) -> int:
        """The most elements of a call, or of an iteration over lines, that is a native region."""
        if not stores_in_place(self.source.definition, self.types):
            return MAX_NATIVE_ELEMENTS
        is_slow = calls_slow_functions(self.source.definition.body)
        return MAX_SLOW_STORES if is_slow else MAX_STORES

    def _line_size(self, arguments: Sequence[Any], lines: Mapping[str, tuple[int, ...]]) -> int:
        """Return the most elements that an iteration of a loop over lines takes of an array."""
        sizes = []
        for name, x in zip(self.types.parameters, arguments, strict=True):
            if name in lines:
                steps = math.prod(x.shape[axis] for axis in lines[name] if axis < x.ndim)
                sizes.append(x.size // max(steps, 1))
        return max(sizes)

    def ready_native(self) -> HostCode | None:
        """Return the native region; ``None`` if the compiler does not have something in it.

        Raises:
            FallbackError: the policy forbids that a function without arrays runs in Python.
        """
        with self._lock:
            if self.native is None and self.refusal is None:
                try:
                    self.native = self.code.compiled(self.orders)
                except KernelCompileError as error:
                    if self.is_native and not self.walks and not _has_arrays(self.types):
                        name, line = self.source.function.__name__, self.source.first_line
                        fallback.runs_in_python(name, self.source.file, line, str(error))
                    self.refusal, self.is_native = error, False
                else:
                    if self.is_native and not self.bounds:
                        self.always_native = self.native
            return self.native

    def ready_driver(self) -> Driver:
        """Return the function split into regions."""
        with self._lock:
            if self.driver is None:
                driver = self.split or Driver(self.source, self.types, self.options)
                for loop in driver.uncut if self.refusal is not None else ():
                    name, file = self.source.function.__name__, self.source.file
                    fallback.runs_in_python(name, file, loop.lineno, str(self.refusal))
                if driver.uncut and not self.in_cpu:
                    raise self.source.error(
                        driver.uncut[0],
                        "this loop over elements returns from the function, which one work-item of "
                        f"{describe_queue(self.queue)} cannot do",
                        "use break and return after the loop, write it with dp.prange, or move "
                        "the arrays to a CPU device",
                    )
                for region in driver.regions:
                    region.prepare(self.types, self.orders, self.queue)
                self.driver = driver
            return self.driver

    def report_tasks(self, name: str) -> None:
        """Raise if the policy forbids the loops that run as one work-item or on the host."""
        if config.fallback == "error" and not self.in_cpu and self.driver is not None:
            for region in self.driver.regions:
                if isinstance(region, NativeRegion) and not isinstance(region, Nest):
                    fallback.is_sequential(self.queue, name, self.source.file, region.line)


class JitFunction:
    """A function compiled by :func:`jit`; it is called like the Python function.

    Attributes:
        py_func: the Python function.
        options: the compiler options.

    Example:
        >>> import dparray as dp
        >>> @dp.jit
        ... def running_sum(x):
        ...     for i in range(1, x.size):
        ...         x[i] += x[i - 1]
        ...     return x
        >>> running_sum(dp.ones(4)).tolist()
        [1.0, 2.0, 3.0, 4.0]
        >>> running_sum.signatures
        [('float64[1]',)]
    """

    def __init__(self, function: FunctionType, options: dict[str, Any]) -> None:
        if not isinstance(function, FunctionType):
            raise KernelArgumentError(_not_a_function(function))
        self.py_func = function
        self.options = options
        self._made_by = type(self), function, options
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self._signature = _signature_of(function)
        for name, parameter in self._signature.parameters.items():
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                raise KernelArgumentError(_accepts_any_number(function, name))
        self._parameters = tuple(self._signature.parameters)
        self._count = len(self._parameters)
        self._defaults = function.__defaults__ or ()
        kinds = {parameter.kind for parameter in self._signature.parameters.values()}
        self._is_plain = inspect.Parameter.KEYWORD_ONLY not in kinds
        self._source: Source | None = None
        self._references: list[Reference] = []  # what the source and the plans depend on
        self._plans: dict[tuple[Any, ...], Plan] = {}
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"<dparray jit function {self.__qualname__}>"

    def __reduce__(self) -> str:
        return self.__qualname__  # functions are pickled by name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def _read(self) -> Source:
        """Return the source with the current values of names; drop plans with other values."""
        with self._lock:
            source = self._source
            if source is None or not all(each.is_current for each in self._references):
                source = self._source = checked_source(self.py_func)
                self._references, self._plans = source.references, {}
            return source

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run the function on the queue of its arrays."""
        for read, name, value in self._references:
            if read(name, UNASSIGNED) is not value:
                self._read()
                break
        queue = None
        key: list[Any] = []
        if named or len(arguments) != self._count:
            arguments = self._completed(arguments, named)
        for x in arguments:
            if type(x) is ndarray:
                key.append((x.dtype, len(x.shape)))
                if queue is None:
                    queue = x.queue
                elif x.queue is not queue and x.queue != queue:
                    common_placement(self.__name__, self._arrays(arguments))
            elif type(x) in (float, int):
                key.append(type(x))
            else:
                return self._call_otherwise(arguments)
        return self._run(arguments, queue, tuple(key))

    def _run(self, arguments: tuple[Any, ...], queue: Any, key: tuple[Any, ...]) -> Any:
        if queue is None:
            queue = queue_of(None)
        plan = self._plans.get(key)
        # Another queue may be one of another kind of device.
        if plan is None or plan.queue is not queue or config.debug:
            plan = self._plan(key, queue, arguments)
        native, size = plan.always_native, 0
        if native is None:
            size = sum([x.size for x in arguments if isinstance(x, ndarray)])
            for position, node, dtype in plan.bounds:
                check_fit(plan.source, node, arguments[position], dtype)
        if native or plan.runs_native(size, arguments):
            host = tuple([host_view(x) if type(x) is ndarray else x for x in arguments])
            native = native or plan.native or plan.ready_native()
            if native is not None:
                value = native.run(host, queue)
                if value is None or plan.returns_number:
                    return value
                if plan.code.returns_list:
                    return value.tolist()
                arrays = [x for x in arguments if type(x) is ndarray]
                return result_of(value, plan.code.types.result, queue, arrays)
        return self._drive(plan, queue, arguments)

    def _drive(self, plan: Plan, queue: Any, arguments: tuple[Any, ...]) -> Any:
        driver = plan.driver or plan.ready_driver()
        if not plan.in_cpu:
            plan.report_tasks(self.__name__)
        with use_device(queue):
            return driver.function(*arguments)

    def _call_otherwise(self, arguments: tuple[Any, ...]) -> Any:
        """Handle a call with arguments other than arrays, integers and floats."""
        taken = dispatch_override(self, arguments)
        if taken is not NotImplemented:
            return taken
        converted = tuple(
            self._checked(name, x) for name, x in zip(self._parameters, arguments, strict=True)
        )
        arrays, queue = self._placed(converted)
        plan_key = tuple(map(_key, converted))
        if any(_needs_driver(x) for x in converted):
            plan = self._plan(plan_key, queue, converted)
            result = self._drive(plan, queue, converted)
        else:
            result = self._run(converted, queue if arrays else None, plan_key)
        foreign = [x for x in arguments if _is_foreign(x)]
        return _as_foreign(result, foreign, converted, arguments) if foreign else result

    def _plan(self, key: tuple[Any, ...], queue: Any, arguments: Sequence[Any]) -> Plan:
        """Return the plan of a call; queues of CPU devices share it."""
        if not traits_of(queue).shares_memory:
            key = (*key, queue)
        if config.debug:
            key = (*key, "debug")
        if (found := self._plans.get(key)) is not None:
            return found
        for name, x in zip(self._parameters, arguments, strict=True):
            if isinstance(x, ndarray) and is_bfloat16(x.dtype):
                raise DTypeError(
                    f"{self.__name__}: {name} is bfloat16, not supported in compiled code; "
                    f"pass {name}.astype('float32')"
                )
        with self._lock:
            self._read()
            plan = self._plans.get(key)
            if plan is None:
                plan = self._plans[key] = Plan(self, queue, arguments)
                if not plan.may_be_native:
                    plan.ready_driver()
            return plan

    def _checked(self, name: str, x: Any) -> Any:
        """Return an argument that a compiled function accepts, or raise with the fix."""
        if type(x) is ndarray or x is None or isinstance(x, (str, *_NUMBERS)):
            return x
        if isinstance(x, np.ndarray):
            raise HostConversionError(
                f"{self.__name__}: argument {name!r} is a NumPy array, not on a device; copy "
                f"it to one first: {name} = dp.asarray({name})"
            )
        if isinstance(x, tuple):
            items = [self._checked(f"{name}[{at}]", item) for at, item in enumerate(x)]
            return type(x)(*items) if hasattr(x, "_fields") else tuple(items)
        if isinstance(x, ndarray):
            return x
        if is_shareable(x):
            return shared(x, copies_read_only=False)
        if isinstance(x, np.dtype | type | Device) or is_queue(x) or callable(x):
            return x
        raise KernelArgumentError(
            f"{self.__name__}: argument {name!r} is a {type(x).__name__}; a compiled function "
            "accepts arrays, numbers, strings, None and tuples of them; pass "
            + (f"dp.asarray({name}) or tuple({name})" if isinstance(x, list) else "its parts")
        )

    def _completed(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        missing = self._count - len(arguments)
        if not named and self._is_plain and 0 < missing <= len(self._defaults):
            return arguments + self._defaults[-missing:]
        try:
            bound = self._signature.bind(*arguments, **named)
        except TypeError as error:
            raise KernelArgumentError(
                f"{self.__name__}: {error}; its parameters are {', '.join(self._parameters)}"
            ) from None
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    def _arrays(self, arguments: Sequence[Any]) -> list[tuple[str, ndarray]]:
        pairs = zip(self._parameters, arguments, strict=True)
        return [pair for name, x in pairs for pair in _arrays_in(name, x)]

    def _placed(self, arguments: Sequence[Any]) -> tuple[list[tuple[str, ndarray]], Any]:
        """Return the arrays among the arguments, by name, and their queue or the default one."""
        arrays = self._arrays(arguments)
        return arrays, common_placement(self.__name__, arrays).queue if arrays else queue_of(None)

    def simulate(self, arguments: tuple[Any, ...], named: dict[str, Any], launch: Any) -> Any:
        """Run a call with checked indices, and run its ``prange`` loops with ``launch``.

        :func:`dparray.simulate` calls this.
        """
        token = launcher.set(launch)
        try:
            with config.override(debug=True):
                return self(*arguments, **named)
        finally:
            launcher.reset(token)

    # -- inspection -----------------------------------------------------------------------------

    @property
    def signatures(self) -> list[tuple[str, ...]]:
        """The argument types for which it has been compiled, as strings."""
        return [plan.labels for plan in self._plans.values()]

    def inspect(self) -> str:
        """Describe the regions of each signature, with the generated code of native ones."""
        parts = []
        for plan in self._plans.values():
            parts.append(self._describe(plan, plan.is_native or plan.native is not None))
            if plan.native is not None:
                parts.append(ast.unparse(plan.code.tree))
        return "\n".join(parts)

    def explain(self, *arguments: Any, **named: Any) -> JitExplanation:
        """Describe how a call runs, without running it; :func:`dparray.explain` calls this."""
        arguments = self._completed(arguments, named)
        converted = tuple(map(self._checked, self._parameters, arguments))
        arrays, queue = self._placed(converted)
        plan = Plan(self, queue, converted)
        size = sum(x.size for _, x in arrays)
        # What runs in Python is part of the text, so that a call still warns of it.
        with config.override(fallback="allow"):
            is_native = plan.runs_native(size, converted) and plan.ready_native() is not None
            return JitExplanation(self._describe(plan, is_native))

    __dparray_explain__ = explain

    def _describe(self, plan: Plan, is_native: bool) -> str:
        source = plan.source
        # Only labels of arrays have a bracket after a dtype.
        is_default = not re.search(r"\w\[\d", ", ".join(plan.labels))
        queue = describe_queue(plan.queue) + ", as no argument is an array" * is_default
        lines = [
            f"{self.__name__}({', '.join(plan.labels)}) on {queue}",
            f"  {source.file}:{source.first_line}",
        ]
        if is_native:
            where = "" if plan.code.loops else " on the calling thread"
            lines.append(f"  whole function: native region{where} ({plan.reason})")
            for loop in plan.code.loops:
                text = source.lines[loop.line - source.first_line].strip()
                form = loop.describe(True, not loop.is_launched, plan.types)
                lines.append(f"  line {loop.line}: {text}\n    {form}")
            loops = list(other_loops(source, source.definition.body))
            lines += [f"  {each}" for each in remarks(source, loops, plan.types)]
            return "\n".join(lines)
        lines.append(f"  driver in Python, array statements by dparray ({plan.reason})")
        if plan.refusal is not None:
            lines.append(f"  not native: {plan.refusal}")
        for region in plan.ready_driver().regions:
            text = source.lines[region.line - source.first_line].strip()
            kind = "native region: loop over elements"
            if isinstance(region, Nest):
                if not plan.in_cpu:
                    continue
                kind = (
                    f"native parallel region for at most {MAX_NEST_ELEMENTS:,} elements, otherwise:"
                )
            if isinstance(region, NativeRegion) and not plan.in_cpu:
                kind = (
                    f"kernel of one work-item for at most {MAX_TASK_ITERATIONS:,} iterations, "
                    "otherwise native code on the host: loop over elements"
                )
            if isinstance(region, NativeRegion) and region.runs_in_python:
                kind = "runs in Python"
            elif isinstance(region, ParallelRegion):
                kind = region.describe(plan.in_cpu, region.ran_as == "native", plan.types)
            elif plan.in_cpu and not isinstance(region, Nest):
                kind = "\n    ".join([kind, *remarks(source, [region.node], plan.types)])
            lines.append(f"  line {region.line}: {text}\n    {kind}")
        return "\n".join(lines)


travels_by_value(JitFunction)


class JitExplanation(str):
    """The text that explains a call of a compiled function."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _signature_of(f: FunctionType) -> inspect.Signature:
    """Return the parameters of a function's own code, not those of a function that it wraps."""
    plain = FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
    plain.__kwdefaults__ = f.__kwdefaults__
    return inspect.signature(plain)


def _accepts_any_number(f: FunctionType, name: str) -> str:
    text = f"jit: parameter {name!r} of {f.__name__} accepts any number of arguments"
    if hasattr(f, "__wrapped__"):
        return (
            f"{text}, as it is the result of a decorator or of a transformation such as dp.grad; "
            f"write @dp.jit below the decorator, or dp.grad(dp.jit({f.__name__}))"
        )
    return f"{text}; a compiled function must have one named parameter per argument"


def _not_a_function(x: Any) -> str:
    if not callable(x) or isinstance(x, type):
        return (
            f"jit: {x!r} is not a Python function; write @dp.jit above a def, without a signature"
        )
    kind = "bound method" if isinstance(x, MethodType) else type(x).__name__
    return (
        f"jit: {x!r} is a {kind}, whose code cannot be compiled; write a function that calls it, "
        "and compile that one: dp.jit(lambda x: f(x))"
    )


def _are_implemented() -> bool:
    """Return whether operations on arrays may have implementations, which native code lacks."""
    return implementations.are_for_cpu and config.implementations


def _arrays_in(name: str, x: Any) -> list[tuple[str, ndarray]]:
    if isinstance(x, ndarray):
        return [(name, x)]
    if isinstance(x, tuple):
        return [pair for at, item in enumerate(x) for pair in _arrays_in(f"{name}[{at}]", item)]
    return []


def _needs_driver(x: Any) -> bool:
    """Return whether an argument is unsuitable for native regions."""
    if isinstance(x, tuple):
        return bool(_arrays_in("", x)) or any(map(_needs_driver, x))
    return x is not None and not isinstance(x, (ndarray, str, *_NUMBERS))


def _is_foreign(x: Any) -> bool:
    """Return whether an argument is an array of another library, such as dpnp."""
    return not isinstance(x, ndarray) and hasattr(x, "__sycl_usm_array_interface__")


def _as_foreign(
    result: Any, foreign: Sequence[Any], converted: Sequence[Any], given: Sequence[Any]
) -> Any:
    """Convert a result for dpnp arguments to a dpnp array over the same memory."""
    if isinstance(result, tuple):
        items = [_as_foreign(item, foreign, converted, given) for item in result]
        return type(result)(*items) if hasattr(result, "_fields") else tuple(items)
    if not isinstance(result, ndarray):
        return result
    for own, x in zip(converted, given, strict=True):
        if own is result:
            return x
    library = sys.modules[type(foreign[0]).__module__.partition(".")[0]]
    if not hasattr(library, "asarray"):
        return result
    return library.asarray(result.__usm_ndarray__, copy=False)


def _key(x: Any) -> Any:
    if isinstance(x, ndarray):
        return x.dtype, x.ndim
    if isinstance(x, tuple):
        return type(x), *map(_key, x)
    if isinstance(x, _NUMBERS):
        return type(x)
    return x


def _label(x: Any) -> str:
    if isinstance(x, ndarray):
        return f"{x.dtype}[{x.ndim}]"
    if isinstance(x, tuple):
        return f"({', '.join(map(_label, x))})"
    if isinstance(x, np.generic):
        return x.dtype.name
    return repr(x) if isinstance(x, str) or x is None else type(x).__name__


def has_placement(tree: ast.AST) -> bool:
    """Return whether a creation function has a placement argument."""
    return any(
        isinstance(node, ast.keyword)
        and node.arg in _PLACEMENT_KEYWORDS
        and not (isinstance(node.value, ast.Constant) and node.value.value is None)
        for node in ast.walk(tree)
    )


def _has_arrays(types: Inference) -> bool:
    def has(value: Any) -> bool:
        if isinstance(value, Items):
            return any(map(has, value.items))
        return value is UNKNOWN or is_array(value)

    return any(map(has, types.variables.values())) or has(types.result)


@overload
def jit(function: Callable[..., Any], /) -> JitFunction: ...
@overload
def jit(**options: Any) -> Callable[[Callable[..., Any]], JitFunction]: ...
def jit(function: Any = None, /, **options: Any) -> Any:
    """Compile a whole function, loops included, for the types of its arguments.

    The first call with arguments of new types compiles. Loops over :func:`prange` become kernels,
    or native code on the threads of a CPU device. Array statements are dparray operations, fused as
    usual. Loops over elements become native code that runs on the calling thread in the memory of a
    CPU device. On other devices they run as one work-item if they are short, otherwise on the host,
    as ``dp.config.fallback`` allows. Small array functions are native code as a whole. The function
    runs on the queue of its arrays.

    Args:
        function: the function; omit it to get a decorator with options.
        options: ``fastmath=True`` allows native code to reorder floating-point operations;
            ``cache=False`` keeps native code out of the disk cache; ``inline`` and ``parallel`` are
            accepted as in Numba, but a ``prange`` loop is always parallel.

    Raises:
        KernelArgumentError: an option is unknown.
        KernelCompileError: the code cannot be compiled, on the first call.

    Example:
        >>> import dparray as dp
        >>> @dp.jit
        ... def row_sums(x, out):
        ...     for i in dp.prange(x.shape[0]):
        ...         total = 0.0
        ...         for j in range(x.shape[1]):
        ...             total += x[i, j]
        ...         out[i] = total
        >>> x, out = dp.ones((3, 4)), dp.empty(3)
        >>> row_sums(x, out)
        >>> out.tolist()
        [4.0, 4.0, 4.0]
    """
    for name in options:
        if name not in _OPTIONS + _ACCEPTED:
            raise KernelArgumentError(
                f"jit: unknown option {name!r}; options: {', '.join(_OPTIONS)}"
            )
    if options.get("forceobj"):
        raise KernelArgumentError("jit: forceobj=True is not available; call the Python function")
    kept: dict[str, Any] = {
        name: options[name] for name in ("fastmath", "cache", "inline") if name in options
    }
    if kept.get("inline") == "never":
        del kept["inline"]

    def make(python_function: Any) -> Any:
        replayed = getattr(python_function, "__dparray_jit__", None)
        if replayed is not None and replayed.of is python_function:  # a derivative
            return replayed()
        python_function = python_function_of(python_function) or python_function
        if not isinstance(python_function, FunctionType):
            raise KernelArgumentError(_not_a_function(python_function))
        return JitFunction(python_function, kept)

    return make if function is None else make(function)
