"""Options of dparray, each with an environment variable and a scoped override.

Options:
    debug (``DPARRAY_DEBUG``): kernels check every array index against its bounds, and a launch
        waits and raises. Outside of an array, its first element is read and nothing is written (an
        atomic operation changes the first element).
    lazy (``DPARRAY_LAZY``): operations build an expression that is computed when a value is needed;
        off, every operation is computed at once. Results are the same.
    host_tier (``DPARRAY_HOST_TIER``): operations on small arrays on a CPU device are computed on
        the calling thread: at once while the queue is idle, else when a value is needed.
    fp_contract (``DPARRAY_FP_CONTRACT``): in the kernels of expressions, the device may round a
        multiplication and an addition that follow each other once instead of twice. Off by default:
        then an expression gives the same bits as its operations one by one, where these give the
        same on every way (transcendental functions may differ in the last digit between a kernel
        and the host). Kernels that users write are never contracted.
    tuning (``DPARRAY_TUNING``, as JSON): for each type of device (``"cpu"``, ``"gpu"``,
        ``"accelerator"``) how the kernels of expressions are cut, a :class:`Tuning`. Results are
        the same but for the order in which floats are summed. Given as a dict of dicts, which
        changes what it names: ``dp.config.tuning = {"gpu": {"elements": 4, "local_size": 256}}``.
    cost_model (``DPARRAY_COST_MODEL``, as JSON): terms, in seconds, of the model that chooses
        between the calling thread and kernels on a CPU device, instead of its constants:
        ``dp.config.cost_model = {"launch": 50e-6}``. ``dparray info`` lists them. Results are the
        same but for the order in which floats are summed, and the last digit of transcendental
        functions.
    background_compile (``DPARRAY_BACKGROUND_COMPILE``): where the calling thread can compute an
        expression meanwhile, its kernel is compiled, or read from disk, by a thread in the
        background and used from the next time on; off, or where the wait pays, the program waits.
    fused_tier (``DPARRAY_FUSED_TIER``): expressions become kernels; off, only what nothing else can
        compute does.
    host_operands (``DPARRAY_HOST_OPERANDS``): what becomes of NumPy arrays among the operands, and
        of an array where NumPy data are needed (``np.asarray(x)``, ``host[0] = x[0]``, plots).
        ``"error"``, the default, raises :class:`dparray.HostConversionError`, so that no copy is
        overlooked; ``"copy"`` copies them, and ``"warn"`` copies them and warns at the line.
    fallback (``DPARRAY_FALLBACK``): what happens where a function has no kernel and takes values
        from a device that is no CPU to compute with NumPy: ``"allow"``; ``"warn"``, the default,
        once for each line; ``"error"``, a :class:`dparray.FallbackError`. Reads that the program
        asks for (``x.asnumpy()``, ``float(x)``, printing, files) and counts that decide a shape are
        none of it.
    notices (``DPARRAY_NOTICES``): where a person looks, at a terminal or in Jupyter, a line on the
        error stream says once that the program waits for kernels to be compiled.
    placement (``DPARRAY_PLACEMENT``): which device computes a step of an expression: ``"follow"``,
        the default, that of its inputs, and inputs of several queues are an error; ``"fastest"``,
        the one that finishes it first, copies included; or a function of the step that gives a
        device. :func:`dparray.placement` is the same for a ``with`` block, and says more.
    log (``DPARRAY_LOG``): every kernel that is compiled, loaded or launched, every library call,
        piece of work of the host, copy, wait and closed map is told of on the error stream, with
        its place, bytes and the line of the program. Operations on small arrays that the calling
        thread computes at once are seen by :func:`dparray.profile` only.

Example:
    >>> import dparray as dp
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
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

from dparray import _hooks, _log


class Tuning(NamedTuple):
    """How the kernels of expressions are cut on devices of one type.

    Attributes:
        elements: how many elements a work-item of an elementwise kernel computes, 1 to 64.
        local_size: the work-items of a group of an elementwise kernel; ``None`` leaves it to the
            driver. A device has a largest size, beyond which a launch is refused.
        lanes: the work-items of a group that reduces together, or folds neighbouring outputs; 1 to
            1024.

    Example:
        >>> import dparray as dp
        >>> with dp.config.override(tuning={"cpu": {"elements": 4}}):
        ...     print(dp.config.tuning["cpu"])
        Tuning(elements=4, local_size=None, lanes=16)
    """

    elements: int = 1
    local_size: int | None = None
    lanes: int = 16


_LIMITS = {"elements": 64, "local_size": 1 << 16, "lanes": 1024}
# A CPU device walks memory once for each vector of a group's work-items, so a group is one vector
# there (measured); on a GPU few groups of one vector fit a compute unit.
_TUNING = MappingProxyType({"cpu": Tuning(), "gpu": Tuning(lanes=128), "accelerator": Tuning()})
_DEFAULTS: dict[str, Any] = {
    "debug": False,
    "lazy": True,
    "host_tier": True,
    "fp_contract": False,
    "tuning": _TUNING,
    "cost_model": MappingProxyType({}),
    "background_compile": True,
    "fused_tier": True,
    "host_operands": "error",
    "notices": True,
    "log": False,
    "fallback": "warn",
    "placement": "follow",
}
_EXAMPLES = {"tuning": '{"cpu": {"elements": 2}}', "cost_model": '{"launch": 5e-5}'}
#: The terms of the cost model, which :mod:`dparray._evaluate.cost_model` explains.
COSTS = (
    *("launch", "wake", "node", "operation", "host_byte", "device_byte"),
    *("compile", "cores"),
)
#: The words that an option takes, by its name.
WORDS = {
    "host_operands": ("error", "copy", "warn"),
    "fallback": ("allow", "warn", "error"),
    "placement": ("follow", "fastest"),
}
OPTIONS = tuple(_DEFAULTS)
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}

debug: bool
lazy: bool
host_tier: bool
fp_contract: bool
tuning: Mapping[str, Tuning]
cost_model: Mapping[str, float]
background_compile: bool
fused_tier: bool
host_operands: str
notices: bool
log: bool
fallback: str
placement: str | Callable[[Any], Any]


def _from_environment(name: str, default: Any) -> Any:
    """The option's value in the environment, or its default."""
    variable = "DPARRAY_" + name.upper()
    text = os.environ.get(variable)
    if text is None:
        return default
    if name in _EXAMPLES:
        try:
            return _checked(name, json.loads(text))
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"{variable}={text!r} does not fit ({error}); write JSON such as {_EXAMPLES[name]}"
            ) from error
    word = text.strip().lower()
    if name in WORDS:
        return _checked_word(variable, word, WORDS[name])
    if word not in _TRUE | _FALSE:
        raise ValueError(
            f"{variable}={text!r} is neither true nor false; give one of "
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
            f"dparray.config.{name} takes a {expected.__name__}, not {value!r} "
            f"of type {type(value).__name__}"
        )
    return value


def _checked_word(where: str, value: Any, words: tuple[str, ...]) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{where} takes a str, not {value!r} of type {type(value).__name__}")
    if value not in words:
        raise ValueError(f"{where} is one of {', '.join(map(repr, words))}; got {value!r}")
    return value


def _checked_tuning(value: Any) -> Mapping[str, Tuning]:
    """The tuning of all types of devices, of which ``value`` changes some."""
    if not isinstance(value, Mapping):
        raise TypeError(
            f"dparray.config.tuning takes a dict such as {{'cpu': {{'elements': 2}}}}, not "
            f"{value!r}"
        )
    result = dict(_TUNING)
    for kind, given in value.items():
        if kind not in result:
            raise ValueError(
                f"dparray.config.tuning: there is no type of device {kind!r}; types: "
                f"{', '.join(result)}"
            )
        options = given._asdict() if isinstance(given, Tuning) else given
        if not isinstance(options, Mapping):
            raise TypeError(
                f"dparray.config.tuning[{kind!r}] takes a dict or a Tuning, not {given!r}"
            )
        for option, number in options.items():
            _check_number(f"dparray.config.tuning[{kind!r}]", option, number)
        result[kind] = result[kind]._replace(**options)
    return MappingProxyType(result)


def _checked_costs(value: Any) -> Mapping[str, float]:
    """Terms of the cost model."""
    if not isinstance(value, Mapping):
        raise TypeError(
            f"dparray.config.cost_model takes a dict such as {{'launch': 50e-6}}, not {value!r}"
        )
    for name, number in value.items():
        if name not in COSTS:
            raise ValueError(
                f"dparray.config.cost_model has no term {name!r}; terms: {', '.join(COSTS)}"
            )
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise TypeError(f"dparray.config.cost_model: {name} takes a number, not {number!r}")
        if not 0 < number < float("inf"):
            raise ValueError(
                f"dparray.config.cost_model: {name} is positive and finite; got {number}"
            )
    return MappingProxyType({name: float(number) for name, number in value.items()})


def _check_number(where: str, option: Any, number: Any) -> None:
    if option not in _LIMITS:
        raise ValueError(f"{where} has no option {option!r}; options: {', '.join(_LIMITS)}")
    if option == "local_size" and number is None:
        return
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"{where}: {option} takes an integer, not {number!r}")
    if not 1 <= number <= _LIMITS[option]:
        raise ValueError(f"{where}: {option} is from 1 to {_LIMITS[option]}; got {number}")


@contextmanager
def override(**options: Any) -> Iterator[None]:
    """Set options inside a ``with`` block and put the old values back after it.

    Raises:
        AttributeError: there is no such option.
        TypeError: the value is of another type than the option.
        ValueError: there is no such type of device or option of :class:`Tuning`, a number is out
            of range, or a word is none that the option has.

    Example:
        >>> import dparray as dp
        >>> with dp.config.override(lazy=False):
        ...     (dp.ones(100_000) + 1).is_pending
        False
    """
    module = sys.modules[__name__]
    new = {name: _checked(name, value) for name, value in options.items()}
    old = {name: getattr(module, name) for name in new}
    try:
        for name, value in new.items():
            setattr(module, name, value)
        yield
    finally:
        for name, value in old.items():
            setattr(module, name, value)


class _Config(ModuleType):
    """The module's own class, so that a misspelt option or a wrong value is an error."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value if name.startswith("__") else _checked(name, value))
        if name == "log":
            _log.switch(value)
        _hooks.option_was_set(name)


for _name, _default in _DEFAULTS.items():
    globals()[_name] = _from_environment(_name, _default)
sys.modules[__name__].__class__ = _Config
_log.switch(globals()["log"])
