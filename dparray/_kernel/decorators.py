"""Turn user functions into kernels and device functions: ``@kernel`` and ``@device_func``."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, overload

from dparray._kernel.function import KernelFunction
from dparray._language.device_function import DeviceFunction
from dparray.exceptions import KernelArgumentError

__all__ = ["device_func", "kernel"]

OPTIONS = ("debug", "fastmath", "inline_threshold")
_INLINE_THRESHOLDS = (0, 1, 2, 3)
# Options of numba-dpex that have no effect here.
_IGNORED_OPTIONS = ("release_gil", "no_compile", "no_cpython_wrapper", "no_cfunc_wrapper")


# Unsupported options of Numba and CUDA, with their replacements.
_INSTEAD = {
    "parallel": "all work-items of a range run in parallel",
    "nogil": "kernels run without the interpreter's lock",
    "nopython": "kernels are always compiled",
    "cache": "kernels are always cached on disk; `dparray cache` lists them",
    "boundscheck": "dp.config.debug = True checks indices",
    "device": "use @dp.device_func for functions that kernels call",
    "inline": "device functions are always inlined",
    "link": "use dp.raw_kernel for OpenCL C and SPIR-V",
    "max_registers": "the driver allocates registers",
    "opt": "dp.config.debug = True compiles kernels for debuggers",
    "target": "kernels run on the device of their arrays",
}


# Packages whose objects are signatures.
_SIGNERS = ("dparray._kernel.numba_signatures", "numba")


@overload
def kernel(
    function: Callable[..., Any], *, range: Any = None, **options: Any
) -> KernelFunction: ...
@overload
def kernel(
    function: Any = None, *, range: Any = None, **options: Any
) -> Callable[[Callable[..., Any]], KernelFunction]: ...
def kernel(function: Any = None, *, range: Any = None, **options: Any) -> Any:
    """Compile a Python function in the kernel language as a kernel.

    The first parameter is the work-item (:class:`Item` or :class:`NdItem`); the others are arrays,
    scalars and local accessors. The function is compiled at its first launch, for the argument
    types of that launch, and cached on disk for later processes.

    Kernels raise no exceptions. Divisions by zero and mathematical functions outside their domain
    return NumPy's values. A range or a slice whose step is 0 only at run time is empty, and an
    index outside a tuple selects its first item. The result is undefined for an index outside an
    array, a dimension that the range does not have, and an array unpacked to a different number of
    names. ``dp.config.debug`` and :func:`simulate` report all of these except divisions and
    functions. They also check assertions, which are removed otherwise, as with ``python -O``.
    ``round(x, digits)`` of a float is NumPy's ``np.round``. A constant step of 0 and a constant
    dimension that the range does not have are compile errors.

    Args:
        function: the function; a signature or a list of signatures in Numba's types, to compile
            immediately and only for these; or nothing, for a decorator with options.
        range: the default range, or a function of the kernel's arguments that returns it, so that
            ``kernel(*arguments)`` launches.
        options: ``debug``, ``inline_threshold`` and ``fastmath``, which allows a product and a sum
            to be rounded once. On NVIDIA GPUs, a division of float32 numbers then has an error of
            at most 2 ulp, and a square root 1 ulp; both are exactly rounded otherwise.

    Raises:
        KernelArgumentError: there is no work-item parameter, or an option is unknown.

    Example:
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
    """Act as :func:`kernel`; ``kind`` creates it from a function, options and a default range."""
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
        # Imported here: only programs for numba-dpex write signatures.
        from dparray._kernel.numba_signatures import keys_of_signatures

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
    """Compile a function that kernels and other device functions may call; it may return a value.

    Args:
        function: the function; a signature in Numba's types is accepted but not needed.
        options: ``debug`` and ``inline_threshold``; ``fastmath`` is an option of the kernel.

    Example:
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
    """Raise unless ``signature`` can be one: a string, a Numba object, or several of them."""
    several = signature if isinstance(signature, list | tuple) else (signature,)
    for each in several:
        if isinstance(each, tuple):
            _check_signature(maker, each)
        elif isinstance(each, KernelFunction | DeviceFunction):
            what = "kernel" if isinstance(each, KernelFunction) else "device function"
            raise KernelArgumentError(
                f"{maker}: {each.__name__} is already a {what}; decorate the Python function "
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
                f"{maker}: unknown option {name!r}{instead}; options: {', '.join(OPTIONS)}"
            )
    threshold = options.get("inline_threshold", 0)
    if type(threshold) is not int or threshold not in _INLINE_THRESHOLDS:
        raise KernelArgumentError(
            f"{maker}: inline_threshold must be 0, 1, 2 or 3; got {threshold!r}"
        )
    for name in ("debug", "fastmath"):
        if not isinstance(options.get(name, False), bool):
            raise KernelArgumentError(
                f"{maker}: {name} must be True or False; got {options[name]!r}"
            )
    return {name: value for name, value in options.items() if name in OPTIONS}


def kernel_of(candidate: Any) -> KernelFunction:
    """Return the kernel of a launch.

    Raises:
        KernelArgumentError: it is not a kernel.
    """
    if not isinstance(candidate, KernelFunction):
        raise KernelArgumentError(
            f"call_kernel: {candidate!r} is not a kernel; decorate the function with @dp.kernel"
        )
    return candidate
