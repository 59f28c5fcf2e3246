"""Set the options of dparray; each has an environment variable and a scoped override.

Options:
    debug (``DPARRAY_DEBUG``): kernels check every array index, and a launch waits and raises. An
        access out of bounds reads the first element or writes nothing (an atomic operation changes
        the first element).
    lazy (``DPARRAY_LAZY``): operations build an expression that is computed when a value is needed;
        off, each operation is computed immediately. Results are the same.
    device (``DPARRAY_DEVICE``): the default device, a string for :class:`dparray.Device`; empty for
        the first of ``dp.devices()``.
    host_tier (``DPARRAY_HOST_TIER``): NumPy computes operations on small arrays of a CPU device on
        the calling thread: immediately if the queue is idle, otherwise when a value is needed.
    fp_contract (``DPARRAY_FP_CONTRACT``): fused kernels may round a multiplication and a following
        addition once instead of twice (FMA). Off by default: then an expression gives the same bits
        as its single operations, except that transcendental functions may differ in the last digit
        between a kernel and the host. User-defined kernels are never contracted; the kernels of
        Tile contractions, such as convolutions, and what follows in them, always are.
    tuning (``DPARRAY_TUNING``, as JSON): the parameters of fused kernels for each device type
        (``"cpu"``, ``"gpu"``, ``"accelerator"``), a :class:`Tuning`. Only the order of float sums
        depends on them. A dict of dicts changes the parameters that it names: ``dp.config.tuning =
        {"gpu": {"elements": 4, "local_size": 256}}``.
    cost_model (``DPARRAY_COST_MODEL``, as JSON): terms, in seconds, of the model that chooses
        between NumPy and a kernel: ``launch``, ``addition``, ``compile``.
    background_compile (``DPARRAY_BACKGROUND_COMPILE``): a background thread compiles the kernel
        of an expression, or reads it from disk, while the calling thread computes with NumPy or
        dpnp; off, or for long computations, the program waits for the kernel.
    fused_tier (``DPARRAY_FUSED_TIER``): expressions become fused kernels; off, only if no other
        backend can compute them.
    implementations (``DPARRAY_IMPLEMENTATIONS``): plans use the functions of
        :func:`dparray.implement`; off, as if there were none.
    host_operands (``DPARRAY_HOST_OPERANDS``): the treatment of NumPy operands and of arrays where
        NumPy data is needed (``np.asarray(x)``, ``host[0] = x[0]``, plots). ``"error"``, the
        default, raises :class:`dparray.HostConversionError`; ``"copy"`` copies, and ``"warn"``
        copies and warns once per line. On ``host:cpu``, ``np.asarray(x)`` always returns a copy.
    fallback (``DPARRAY_FALLBACK``): the treatment of functions without a kernel, which would copy
        values from a device other than a CPU and compute with NumPy: ``"allow"``; ``"warn"``, the
        default, once per line; ``"error"`` raises :class:`dparray.FallbackError`. Explicit reads
        (``x.asnumpy()``, ``float(x)``, printing, files) and counts that decide a shape are allowed.
    notices (``DPARRAY_NOTICES``): in a terminal and in Jupyter, one line on the error stream
        reports that the program waits for kernels to be compiled. Another reports that the
        installation has no compiled fast path for small arrays.
    placement (``DPARRAY_PLACEMENT``): the device of each step of an expression: ``"follow"``, the
        default, uses the queue of the inputs, and inputs on several queues raise an error;
        ``"fastest"`` uses the device that finishes first, copies included; a function of the step
        returns a device. :func:`dparray.placement` sets it for a ``with`` block.
    zero_wins (``DPARRAY_ZERO_WINS``): in gradients, the product of a zero cotangent and an infinite
        derivative is 0, so that ``where(x > 0, sqrt(x), 0)`` has the gradient 0 at 0; off, it is
        NaN, as in JAX.
    log (``DPARRAY_LOG``): every compile, load, launch, library call, host computation, copy, wait
        and closed map is logged to the error stream, with its queue, bytes and source line. Only
        :func:`dparray.profile` shows operations on small arrays that NumPy computes immediately.

Example:
    >>> with dp.config.override(debug=True):
    ...     dp.config.debug
    True
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple, cast

from dparray import _hooks, _log


class Tuning(NamedTuple):
    """Parameters of fused kernels on devices of one type.

    Attributes:
        elements: elements per work-item of an element-wise kernel, 1 to 64.
        local_size: work-items per group of an element-wise kernel; ``None`` leaves it to the
            driver. A launch raises an error if it exceeds the limit of the device.
        lanes: work-items per group in a reduction, 1 to 1024.
        bytes_in_flight: bytes that a work-item of an element-wise kernel loads before it stores, 1
            to 64, on GPUs that load vectors; 1 leaves one element to a work-item.

    Example:
        >>> with dp.config.override(tuning={"cpu": {"elements": 4}}):
        ...     print(dp.config.tuning["cpu"])
        Tuning(elements=4, local_size=None, lanes=16, bytes_in_flight=16)
    """

    elements: int = 1
    local_size: int | None = None
    lanes: int = 16
    bytes_in_flight: int = 16


_LIMITS = {"elements": 64, "local_size": 1 << 16, "lanes": 1024, "bytes_in_flight": 64}
# A CPU device traverses memory once for each vector of a group's work-items, so a group is one
# vector there (measured). On a GPU only a few one-vector groups would fit a compute unit.
# No GPU was timed: its row is an estimate, for Intel's and NVIDIA's alike.
_TUNING = MappingProxyType({"cpu": Tuning(), "gpu": Tuning(lanes=128), "accelerator": Tuning()})
_DEFAULTS: dict[str, Any] = {
    "debug": False,
    "lazy": True,
    "device": "",
    "host_tier": True,
    "fp_contract": False,
    "tuning": _TUNING,
    "cost_model": MappingProxyType({}),
    "background_compile": True,
    "fused_tier": True,
    "implementations": True,
    "host_operands": "error",
    "notices": True,
    "zero_wins": True,
    "log": False,
    "fallback": "warn",
    "placement": "follow",
}
_EXAMPLES = {"tuning": '{"cpu": {"elements": 2}}', "cost_model": '{"launch": 5e-5}'}
#: The terms of the cost model, explained in :mod:`dparray._evaluate.cost_model`.
COSTS = ("launch", "addition", "compile")
#: The allowed words of an option, by its name.
WORDS = {
    "host_operands": ("error", "copy", "warn"),
    "fallback": ("allow", "warn", "error"),
    "placement": ("follow", "fastest"),
}
OPTIONS = tuple(_DEFAULTS)
#: The options that affect plans.
PLAN_OPTIONS = {"cost_model", "fp_contract", "fused_tier", "host_tier", "implementations", "tuning"}
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}

debug: bool
lazy: bool
device: str
host_tier: bool
fp_contract: bool
tuning: Mapping[str, Tuning]
cost_model: Mapping[str, float]
background_compile: bool
fused_tier: bool
implementations: bool
host_operands: str
notices: bool
zero_wins: bool
log: bool
fallback: str
placement: str | Callable[[Any], Any]


def _from_environment(name: str, default: Any) -> Any:
    """Return the option's value from the environment, or its default."""
    variable = "DPARRAY_" + name.upper()
    text = os.environ.get(variable)
    if text is None:
        return default
    if name in _EXAMPLES:
        try:
            return _checked(name, json.loads(text))
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"invalid {variable}={text!r} ({error}); write JSON such as {_EXAMPLES[name]}"
            ) from error
    if name == "device":
        return text.strip()
    word = text.strip().lower()
    if name in WORDS:
        return _checked_word(variable, word, WORDS[name])
    if word not in _TRUE | _FALSE:
        raise ValueError(
            f"{variable} must be a Boolean, not {text!r}; write one of "
            f"{sorted(_TRUE)} or {sorted(_FALSE - {''})}"
        )
    return word in _TRUE


def _checked(name: str, value: Any) -> Any:
    if name not in _DEFAULTS:
        raise AttributeError(f"dparray.config has no option {name!r}; options: {sorted(_DEFAULTS)}")
    if name == "tuning":
        return _checked_tuning(value)
    if name == "cost_model":
        return _checked_costs(value)
    if name == "placement" and callable(value):
        return value
    if name in WORDS:
        return _checked_word(f"dparray.config.{name}", value, WORDS[name])
    expected = type(_DEFAULTS[name])
    if not isinstance(value, expected):
        raise TypeError(
            f"dparray.config.{name} must be a {expected.__name__}, not {value!r} "
            f"of type {type(value).__name__}"
        )
    return value


def _checked_word(where: str, value: Any, words: tuple[str, ...]) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{where} must be a str, not {value!r} of type {type(value).__name__}")
    if value not in words:
        raise ValueError(f"{where} must be one of {', '.join(map(repr, words))}, not {value!r}")
    return value


def _checked_tuning(value: Any) -> Mapping[str, Tuning]:
    """Return the tuning of all device types with the changes of ``value``."""
    if not isinstance(value, Mapping):
        raise TypeError(
            f"dparray.config.tuning must be a dict such as {{'cpu': {{'elements': 2}}}}, not "
            f"{value!r}"
        )
    result = dict(_TUNING)
    for kind, changes in value.items():
        if kind not in result:
            raise ValueError(
                f"dparray.config.tuning: unknown device type {kind!r}; expected one of "
                f"{', '.join(result)}"
            )
        options = changes._asdict() if isinstance(changes, Tuning) else changes
        if not isinstance(options, Mapping):
            raise TypeError(
                f"dparray.config.tuning[{kind!r}] must be a dict or a Tuning, not {changes!r}"
            )
        for option, number in options.items():
            _check_number(f"dparray.config.tuning[{kind!r}]", option, number)
        result[kind] = result[kind]._replace(**options)
    return MappingProxyType(result)


def _checked_costs(value: Any) -> Mapping[str, float]:
    if not isinstance(value, Mapping):
        raise TypeError(
            f"dparray.config.cost_model must be a dict such as {{'launch': 50e-6}}, not {value!r}"
        )
    for name, number in value.items():
        if name not in COSTS:
            raise ValueError(
                f"dparray.config.cost_model has no term {name!r}; terms: {', '.join(COSTS)}"
            )
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise TypeError(f"dparray.config.cost_model: {name} must be a number, not {number!r}")
        if not 0 < number < float("inf"):
            raise ValueError(
                f"dparray.config.cost_model: {name} must be positive and finite; got {number}"
            )
    return MappingProxyType({name: float(number) for name, number in value.items()})


def _check_number(where: str, option: Any, number: Any) -> None:
    if option not in _LIMITS:
        raise ValueError(f"{where} has no option {option!r}; options: {', '.join(_LIMITS)}")
    if option == "local_size" and number is None:
        return
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"{where}: {option} must be an integer, not {number!r}")
    if not 1 <= number <= _LIMITS[option]:
        raise ValueError(f"{where}: {option} must be from 1 to {_LIMITS[option]}, not {number}")


@contextmanager
def override(**options: Any) -> Iterator[None]:
    """Set options inside a ``with`` block, for the current thread or task.

    Threads that are started in the block see the options of the process. While a generator is
    suspended in the block, its caller sees the options of the block.

    Raises:
        AttributeError: the option does not exist.
        TypeError: the value has the wrong type.
        ValueError: the value is invalid: an unknown device type or word, a number out of range.

    Example:
        >>> with dp.config.override(lazy=False):
        ...     (dp.ones(100_000) + 1).is_pending
        False
    """
    new = {name: _checked(name, value) for name, value in options.items()}
    with _blocks.enter(new):
        yield


_of_process: dict[str, Any] = {}
_blocks = _hooks.Blocks("dparray_options", lambda options: list(map(_publish, options)))
#: Whether blocks of several threads or tasks differ in options that decide about plans.
plans_differ = False


def values_in_force(name: str) -> list[Any]:
    """Return the value of an option in the process, and those in the blocks of all threads.

    Example:
        >>> with dp.config.override(lazy=False):
        ...     dp.config.values_in_force("lazy")
        [True, False]
    """
    return [_of_process[name], *(each[name] for each in _blocks.in_force if name in each)]


def plan_options() -> tuple[Any, ...]:
    """Return the options that decide about plans; needed only while ``plans_differ``.

    Example:
        >>> len(dp.config.plan_options())
        6
    """
    return tuple([repr(__getattr__(name)) for name in PLAN_OPTIONS])


def _publish(name: str) -> None:
    """Store an option as an attribute, which is read fast, or let :func:`__getattr__` find it."""
    global plans_differ
    first, *others = values_in_force(name)
    if all(each == first for each in others):
        globals()[name] = first
    else:
        globals().pop(name, None)
    plans_differ = not globals().keys() >= PLAN_OPTIONS
    if name == "log":
        _log.switch(first or any(others))
    _hooks.option_was_set(name)


def _innermost(name: str) -> dict[str, Any]:
    for block in reversed(_blocks.entered.get()):
        if name in block.value:
            return cast("dict[str, Any]", block.value)
    return _of_process


def __getattr__(name: str) -> Any:
    if name in _of_process:
        return _innermost(name)[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Config(ModuleType):
    """The class of this module: a misspelled option or an invalid value raises an error."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):
            super().__setattr__(name, value)
            return
        with _hooks.changing:
            options = _innermost(name)
            options[name] = _checked(name, value)
            _publish(name)
        if name in PLAN_OPTIONS and options is _of_process:
            _hooks.option_was_set("plans")

    def __reduce__(self) -> tuple[Any, ...]:  # cloudpickle only knows plain modules
        return import_module, (__name__,)


for _name, _default in _DEFAULTS.items():
    _of_process[_name] = globals()[_name] = _from_environment(_name, _default)
sys.modules[__name__].__class__ = _Config
_log.is_on = lambda: bool(__getattr__("log"))
_log.switch(_of_process["log"])
