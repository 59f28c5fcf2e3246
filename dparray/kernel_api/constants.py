"""Kernel parameters whose values are compile-time constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dparray._type_keys import text_of
from dparray.exceptions import KernelArgumentError


class constexpr:
    """Annotation for a parameter whose value is a constant: the kernel is compiled for each value.

    Such a parameter can be used wherever a constant is required: as the shape of a
    :class:`PrivateArray` or a :class:`LocalArray`, a dtype, the name of a group operation, or a
    condition whose other branch is not compiled. Its value is a Boolean, integer, float, string,
    ``None``, dtype or a tuple of these. SYCL calls these specialization constants.

    Example:
        >>> @dp.kernel
        ... def power(item, x, times: dp.constexpr):
        ...     value = x[item.get_id(0)]
        ...     for _ in range(times - 1):
        ...         value *= x[item.get_id(0)]
        ...     x[item.get_id(0)] = value
        >>> x = dp.asarray([1, 2, 3])
        >>> event = power[3](x, 3)
        >>> x.tolist()
        [1, 8, 27]
    """


class Constant:
    """The value of a constant parameter, for a launch."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def constant_parameters(function: Callable[..., Any]) -> frozenset[str]:
    """Return the parameters of a kernel that are annotated as constants."""
    found = set()
    for name, annotation in getattr(function, "__annotations__", {}).items():
        if isinstance(annotation, str) and annotation.rpartition(".")[2] == "constexpr":
            try:
                # as Python would have done at the definition of the function
                annotation = eval(annotation, function.__globals__)
            except Exception:
                continue
        if annotation is constexpr and name != "return":
            found.add(name)
    return frozenset(found)


def checked(kernel: str, parameter: str, value: Any) -> Constant:
    """Return the value of a constant parameter.

    Raises:
        KernelArgumentError: the value cannot be a constant.
    """
    try:
        text_of(value)
    except TypeError as error:
        raise KernelArgumentError(f"kernel {kernel}: argument {parameter!r} is {error}") from None
    return Constant(value)
