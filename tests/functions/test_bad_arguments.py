"""Every public function with each argument wrong in turn: the error is always one of dparray's.

Errors raised inside leave the namespace through :mod:`dparray._functions.public`.
"""

from __future__ import annotations

import inspect
import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dparray as dp

NAMESPACES = {
    "dp": dp,
    "dp.linalg": dp.linalg,
    "dp.fft": dp.fft,
    "dp.lib.stride_tricks": dp.lib.stride_tricks,
}
#: Functions that take files, device functions or settings.
OTHERS = {
    *("call_kernel", "call_kernel_async", "device_func", "elementwise", "eval", "explain"),
    *("fromfile", "genfromtxt", "implement", "kernel", "load", "load_ipython_extension", "loadtxt"),
    *("reduction", "save", "savetxt", "savez", "savez_compressed", "set_default_device"),
    *("simulate", "synchronize", "unload_ipython_extension", "use_device", "vectorize"),
    *dp.kernel_api.__all__,
}
BAD: list[Any] = [
    *(1.5, -7, 99, True, None, "nonsense", b"x", float("nan"), (0, 0), [], {}, object()),
    *([1, "a"], [[1], [1, 2]], np.ones(3), np.datetime64("2020"), lambda: None),
    *((2**40, 2**40), 2**70, [None], Ellipsis),
]


def given() -> dict[str, Any]:
    """Return arrays for calls that work; new ones for each function, as some write into them."""
    device = dp.Device("cpu")
    return {
        "X": dp.asarray(np.arange(12.0).reshape(3, 4)),
        "M": dp.asarray([[2.0, 1.0], [1.0, 3.0]]),
        "V": dp.arange(4.0),
        "I": dp.asarray([1, 0, 2]),
        "elsewhere": dp.ones(2, sycl_queue=device.new_queue().queue),
    }


def candidates(g: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Return the arguments, of which each function takes some."""
    X, M, V, I = (g[name] for name in "XMVI")  # noqa: E741
    B = V > 1
    yield from ((X,), (V,), (M,), (I,), (X, X), (V, V), (M, M), (I, I), (3,), ((2, 3),))
    yield from (("i->i", V), (V, 1), (X, 0), (B, V), (V, B, 1.0), (V, [0], 1.0), ([V, V],))
    yield from ((V, V, V), (V, V, 1), ([B], [V]), (lambda v: v, 0, X), (dp.sum, X, 0))
    yield from ((I, (3, 4)), ([I, I], (3, 4)), (X, (12,)), (X, 0, 1), (I, [V, V, V]))
    yield from ((V, [B], [1.0]), (X, I[None, :], 0), ("float64",), ("float64", "float32"))
    yield from ((0, 1), (1, 10), (lambda i, j: i, (2, 2)), (b"12345678",), ([1.0], float))
    yield from ((4, dp.triu), (dp.ones((1, 2, 4)), 2), ())


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    for place, namespace in NAMESPACES.items():
        for name in sorted(getattr(namespace, "__all__", None) or dir(namespace)):
            value = getattr(namespace, name)
            if name.startswith("_") or name in OTHERS or not inspect.isfunction(value):
                continue
            if value.__module__.startswith("dparray"):
                yield f"{place}.{name}", value


def outcome(call: Callable[[], Any]) -> Exception | None:
    """Return the error of a call, if any: some bad values are valid for some functions."""
    try:
        call()
    except Exception as error:
        return error
    return None


def is_allowed(error: Exception | None) -> bool:
    """Return whether it is dparray's, has a clear message, or is Python's error about the call."""
    if error is None or isinstance(
        error, dp.DparrayError | IndexError | OverflowError | np.linalg.LinAlgError
    ):
        return True
    about_the_call = ("positional", "keyword", "missing")
    return isinstance(error, TypeError) and any(word in str(error) for word in about_the_call)


def calls(
    function: Callable[..., Any], arguments: tuple[Any, ...], bad: Any
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the call with each argument in turn replaced by a bad one."""
    for place, parameter in enumerate(inspect.signature(function).parameters.values()):
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        changed, options = list(arguments), {}
        if place < len(arguments) and parameter.kind is not parameter.KEYWORD_ONLY:
            changed[place] = bad
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            changed = [*changed[:place], bad]
        else:
            options[parameter.name] = bad
        yield parameter.name, lambda a=changed, o=options: function(*a, **o)


@pytest.mark.parametrize(
    ("name", "function"), [pytest.param(*item, id=item[0]) for item in public()]
)
def test_a_wrong_argument_raises_a_dparray_error(name: str, function: Callable[..., Any]) -> None:
    def works(arguments: tuple[Any, ...]) -> bool:
        return outcome(lambda: function(*arguments)) is None

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        arguments = next(filter(works, candidates(given())), ())
        for bad in [*BAD, given()["elsewhere"]]:
            for parameter, call in calls(function, arguments, bad):
                error = outcome(call)
                assert is_allowed(error), f"{name}: {parameter}={bad!r:.40}: {error!r}"


def test_the_message_names_the_function_and_the_argument() -> None:
    x = dp.ones((2, 2))
    for call, words in (
        (lambda: dp.roll(x, "a"), r"roll: .*shape \(2, 2\).*shift='a'"),
        (lambda: dp.percentile(x, "a"), r"percentile: .*could not convert.*q='a'"),
        (lambda: dp.fft.fft(x, n="a"), r"fft: .*n='a'"),
        (lambda: dp.random.default_rng(0).bytes("a"), r"bytes: .*length='a'"),
    ):
        with pytest.raises(dp.ArgumentError, match=words) as caught:
            call()
        assert caught.value.__cause__ is not None


def test_too_large_requests_of_the_host_raise_dparrays_memory_error() -> None:
    for call in (
        lambda: dp.fft.fft(dp.ones((3, 4)), n=2**45),
        lambda: dp.hanning(2**45),
        lambda: dp.bincount(dp.asarray([1]), minlength=2**45),
    ):
        with pytest.raises(dp.MemoryError, match="too large"):
            call()
    with pytest.raises(dp.ShapeError, match=r"array_split: .* sections"):
        dp.array_split(dp.ones(3), 2**45)
    assert dp.polyder([1, 2, 3], 2**45).shape == (0,)


def test_errors_of_user_defined_functions_are_passed_on() -> None:
    def failing(line: Any) -> Any:
        raise ValueError("mine")

    with pytest.raises(ValueError, match=r"^mine$") as caught:
        dp.apply_along_axis(failing, 0, dp.ones((2, 2)))
    assert not isinstance(caught.value, dp.DparrayError)


def test_objects_never_reach_memory() -> None:
    """NumPy makes object arrays of them, whose addresses must not be used as numbers."""
    x = dp.ones(4)
    for value in (object(), "a", lambda: None):
        with pytest.raises(dp.DparrayError):
            dp.where(x > 0, value, x)
        with pytest.raises(dp.DparrayError):
            dp.putmask(x, x > 0, value)
    assert x.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("count", [3, 300_000])
@pytest.mark.parametrize("operation", ["add", "in place", "negative"])
def test_an_error_comes_without_numpys(count: int, operation: str) -> None:
    x, longer = dp.ones(count), dp.ones(count + 1)
    calls = {
        "add": lambda: x + longer,
        "in place": lambda: operator.iadd(x, longer),
        "negative": lambda: -(x > 0),
    }
    with pytest.raises(dp.exceptions.DparrayError) as refusal:
        calls[operation]()
    assert refusal.value.__context__ is None or refusal.value.__suppress_context__
