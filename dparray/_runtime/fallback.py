"""The policy for device data that is copied to the host for a function without a kernel.

The policy does not cover reads that the program requests: ``asnumpy``, ``item``, ``float(x)``,
printing, files. It covers functions that have no kernel and call NumPy internally. A CPU device is
never affected, because the host is the device.
"""

from __future__ import annotations

import warnings
from typing import Any

from dparray import _hooks, config
from dparray._driver import traits_of
from dparray.device import describe_queue
from dparray.exceptions import FallbackError

#: Functions that convert to host values or text on request.
_ASKED = frozenset(
    {"asnumpy", "to_numpy", "ndenumerate", "array_interface", "__array__", "simulate"}
    | {"item", "tolist", "tobytes", "tofile", "dump", "dumps", "view_on_host", "map"}
    | {"save", "savez", "savez_compressed", "savetxt", "array_repr", "array_str", "array2string"}
    | {"allclose", "array_equal", "array_equiv", "may_share_memory", "shares_memory", "explain"}
    | {"to_device", "from_dlpack", "asarray", "array", "copyto", "eval"}
    | {"__bool__", "__int__", "__float__", "__complex__", "__index__", "__repr__", "__str__"}
    | {"__format__", "__hash__", "__bytes__", "__reduce__", "__dlpack__", "__contains__"}
    | {"repr_html_", "repr_mimebundle_", "__array_function__"}
    # Counts, fractions, positions and points to split at decide what is launched; elements stay.
    | {"repeat", "quantile", "percentile", "nanquantile", "nanpercentile", "delete", "insert"}
    | {"split", "array_split", "hsplit", "vsplit", "dsplit"}
)
_told: set[tuple[Any, ...]] = set()


class FallbackWarning(UserWarning):
    """A function left a device for the host, or ran as one work-item; issued once for a line."""


def leaves(queue: Any, nbytes: int) -> None:
    """Apply the policy to data that is about to be copied from a device that is not a CPU.

    Raises:
        FallbackError: the policy forbids the copy.
    """
    if config.fallback == "allow":
        return
    user, operation = _hooks.request()
    if user is None or operation in _ASKED or operation.startswith("assert_"):  # dp.testing
        return
    text = (
        f"{operation}: {nbytes} bytes leave {describe_queue(queue)} for code on the host, because "
        "this function has no kernel for them and computes with NumPy; move the arrays to a CPU "
        f'device first (x.to_device("cpu")), {_library_missing(queue)}compute it in another way, '
        'or allow it: dp.config.override(fallback="allow")'
    )
    _raise_or_warn(text, user.f_code.co_filename, user.f_lineno, operation)


def _raise_or_warn(text: str, file: str, line: int, function: str) -> None:
    """Raise if the policy forbids a copy or a loop, otherwise warn once for a line."""
    if config.fallback == "error":
        raise FallbackError(text)
    if (file, line, function) not in _told:
        _told.add((file, line, function))
        warnings.warn_explicit(text, FallbackWarning, file, line)


def _library_missing(queue: Any) -> str:
    traits = traits_of(queue)
    return "" if traits.library or not traits.library_fix else f"{traits.library_fix}, "


def runs_in_python(function: str, file: str, line: int, reason: str) -> None:
    """Apply the policy to compiled code that is about to run in Python.

    Args:
        function: the name of the compiled function.
        file: the file of the loop or function.
        line: the line of the loop or function.
        reason: the error of the compiler.

    Raises:
        FallbackError: the policy forbids it.
    """
    if config.fallback == "allow":
        return
    text = (
        f"{reason}\nSo line {line} of {function} and what belongs to it run in Python; change it, "
        'or allow it: dp.config.override(fallback="allow")'
    )
    _raise_or_warn(text, file, line, function)


def is_sequential(queue: Any, function: str, file: str, line: int, nbytes: int = 0) -> None:
    """Apply the policy to a loop that is about to run as one work-item of a device, or on the host.

    Args:
        queue: of the device.
        function: the name of the compiled function.
        file: the file of the loop.
        line: the line of the loop.
        nbytes: the bytes that are copied to the host for it; 0 for one work-item.

    Raises:
        FallbackError: the policy forbids it.
    """
    policy = config.fallback
    if policy == "allow":
        return
    device = describe_queue(queue)
    how = f"as a single work-item on {device}"
    if policy == "error":  # It is raised before the loop is reached, and its arrays are known.
        how += ", or on the host if it is long"
    elif nbytes:
        how = f"on the host, for which {nbytes} bytes leave {device}"
    text = (
        f"{function}, line {line}: this loop runs {how}, because it is not a prange loop; write it "
        "with dp.prange if its iterations are independent, move the arrays to a CPU device "
        '(x.to_device("cpu")), or allow it: dp.config.override(fallback="allow")'
    )
    _raise_or_warn(text, file, line, function)
