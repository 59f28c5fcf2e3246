"""``@kernel`` and ``@device_func``: functions of users become kernels and device functions."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, overload

from dparray._compiler.backend import keys_of_signatures
from dparray._compiler.device_function import DeviceFunction
from dparray._kernel.function import KernelFunction
from dparray.exceptions import KernelArgumentError

__all__ = [
    "device_func",
    "kernel",
]


OPTIONS = ("debug", "inline_threshold")


_INLINE_THRESHOLDS = (0, 1, 2, 3)


# Options of numba-dpex that say nothing here.
_IGNORED_OPTIONS = ("release_gil", "no_compile", "no_cpython_wrapper", "no_cfunc_wrapper")


# Options of Numba and CUDA that there are not, with what there is.
_INSTEAD = {
    "fastmath": "results follow IEEE 754 as NumPy's; float32 data with np.float32 constants is the "
    "fast way, and dp.raw_kernel(source, name, options='-cl-fast-relaxed-math') the relaxed one",
    "parallel": "all work-items of a range run in parallel",
    "nogil": "the interpreter's lock is not held while a kernel runs",
    "nopython": "kernels are always compiled",
    "cache": "kernels are always kept on disk; `dparray cache` shows them",
    "boundscheck": "dp.config.debug = True checks indices",
    "device": "make functions that kernels call with @dp.device_func",
    "inline": "device functions are always inlined",
    "link": "dp.raw_kernel takes OpenCL C and SPIR-V",
    "max_registers": "devices choose their registers",
    "opt": "dp.config.debug = True makes kernels for debuggers",
    "target": "the device is that of the arrays",
}


# Packages whose objects are signatures.
_SIGNERS = ("dparray._compiler", "numba")


@overload
def kernel(
    function: Callable[..., Any], *, range: Any = None, **options: Any
) -> KernelFunction: ...
@overload
def kernel(
    function: Any = None, *, range: Any = None, **options: Any
) -> Callable[[Callable[..., Any]], KernelFunction]: ...
def kernel(function: Any = None, *, range: Any = None, **options: Any) -> Any:
    """Make a kernel of a Python function written in the kernel language.

    The first parameter is the work-item (:class:`Item` or :class:`NdItem`); the others are
    arrays, scalars and local accessors. The function is compiled when it is first launched, for
    the argument types of that launch, and kept on disk for later processes.

    A work-item raises no exception. Quotients by zero and mathematical functions outside of their
    domain have NumPy's values. A range or a slice whose step is 0 only at run time is empty, and an
    index outside of a tuple is that of its first item; an index outside of an array, a dimension
    that the range has not and an array unpacked to another number of names have no defined result.
    ``dp.config.debug`` and :func:`simulate` report all of these but the quotients and functions.
    They also check assertions, which are left out otherwise, as ``python -O`` does.
    ``round(x, digits)`` of a float is NumPy's ``np.round``.
    What else may raise, a constant step of 0 and a constant dimension that the range has not do not
    compile.

    Args:
        function: the function; a signature or a list of signatures in Numba's types, to compile
            at once and for these only; or nothing, for a decorator with options.
        range: the default range, or a function of the kernel's arguments that gives it, so that
            ``kernel(*arguments)`` launches.
        options: ``debug`` and ``inline_threshold``.

    Raises:
        KernelArgumentError: no work-item parameter, or an unknown option.

    Example:
        >>> import dparray as dp
        >>> @dp.kernel(range=lambda x: dp.Range.like(x))
        ... def double(item, x):
        ...     i = item.get_id(0)
        ...     x[i] = 2 * x[i]
        >>> x = dp.arange(4, dtype="int32")
        >>> event = double(x)
        >>> event = dp.call_kernel(double, dp.Range(2), x)
        >>> dp.asnumpy(x)
        array([0, 4, 4, 6], dtype=int32)
    """
    return make_kernel(function, range=range, **options)


def make_kernel(
    function: Any = None,
    *,
    kind: Callable[..., KernelFunction] = KernelFunction,
    range: Any = None,
    **options: Any,
) -> Any:
    """As :func:`kernel`; ``kind`` makes it of a function, its options and its default range."""
    options = _checked_options("kernel", options)
    default = range if callable(range) or range is None else (lambda *arguments: range)

    def make(function: Callable[..., Any]) -> KernelFunction:
        return kind(function, options, default)

    if function is None:
        return make
    if isinstance(function, FunctionType):
        return make(function)
    _check_signature("kernel", function)

    def make_specialized(python_function: Callable[..., Any]) -> KernelFunction:
        made = make(python_function)
        made.specialize(keys_of_signatures(function))
        return made

    return make_specialized


@overload
def device_func(function: Callable[..., Any], **options: Any) -> DeviceFunction: ...
@overload
def device_func(
    function: Any = None, **options: Any
) -> Callable[[Callable[..., Any]], DeviceFunction]: ...
def device_func(function: Any = None, **options: Any) -> Any:
    """Make a function that kernels and other device functions may call; it may return a value.

    Args:
        function: the function; a signature in Numba's types is accepted and not needed.
        options: ``debug`` and ``inline_threshold``.

    Example:
        >>> import dparray as dp
        >>> @dp.device_func
        ... def square(value):
        ...     return value * value
        >>> @dp.kernel
        ... def squares(item, x):
        ...     i = item.get_id(0)
        ...     x[i] = square(x[i])
        >>> x = dp.arange(4, dtype="int32")
        >>> event = squares[4](x)
        >>> dp.asnumpy(x)
        array([0, 1, 4, 9], dtype=int32)
    """
    options = _checked_options("device_func", options)
    if isinstance(function, FunctionType):
        return DeviceFunction(function, options)
    if function is not None:
        _check_signature("device_func", function)
    return lambda function: DeviceFunction(function, options)


def _check_signature(maker: str, signature: Any) -> None:
    """Raise unless ``signature`` can be one: a text, an object of Numba's, or several of them."""
    several = signature if isinstance(signature, list | tuple) else (signature,)
    for each in several:
        if isinstance(each, tuple):
            _check_signature(maker, each)
        elif isinstance(each, KernelFunction | DeviceFunction):
            what = "kernel" if isinstance(each, KernelFunction) else "device function"
            raise KernelArgumentError(
                f"{maker}: {each.__name__} is a {what} already; decorate the Python function, "
                f"once: dp.{maker}({each.__name__}.py_func)"
            )
        elif not isinstance(each, str) and not type(each).__module__.startswith(_SIGNERS):
            raise KernelArgumentError(
                f"{maker}: {each!r} of type {type(each).__name__} is neither a Python function nor "
                f"a signature in Numba's types; write @dp.{maker} above a def"
            )


def _checked_options(maker: str, options: dict[str, Any]) -> dict[str, Any]:
    for name in options:
        if name not in OPTIONS + _IGNORED_OPTIONS:
            instead = f": {_INSTEAD[name]}" if name in _INSTEAD else ""
            raise KernelArgumentError(
                f"{maker}: there is no option {name!r}{instead}; options: {', '.join(OPTIONS)}"
            )
    threshold = options.get("inline_threshold", 0)
    if type(threshold) is not int or threshold not in _INLINE_THRESHOLDS:
        raise KernelArgumentError(f"{maker}: inline_threshold is 0, 1, 2 or 3; got {threshold!r}")
    if not isinstance(options.get("debug", False), bool):
        raise KernelArgumentError(f"{maker}: debug is True or False; got {options['debug']!r}")
    return {name: value for name, value in options.items() if name in OPTIONS}


def kernel_of(candidate: Any) -> KernelFunction:
    """Return the kernel that a launch is given.

    Raises:
        KernelArgumentError: it is none.
    """
    if not isinstance(candidate, KernelFunction):
        raise KernelArgumentError(
            f"call_kernel: {candidate!r} is not a kernel; decorate the function with @dp.kernel"
        )
    return candidate
