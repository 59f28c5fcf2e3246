"""Options of dparray, each with an environment variable and a scoped override.

Options:
    debug (``DPARRAY_DEBUG``): kernels check every array index against its bounds.
    lazy (``DPARRAY_LAZY``): operations build an expression that is computed when a value is needed;
        off, every operation is computed at once. Results are the same.
    host_tier (``DPARRAY_HOST_TIER``): operations on small arrays on a CPU device are computed on
        the calling thread: at once while the queue is idle, else when a value is needed.
    fp_contract (``DPARRAY_FP_CONTRACT``): in the kernels of expressions, the device may round a
        multiplication and an addition that follow each other once instead of twice. Off by default:
        then an expression gives the same bits as its operations one by one, where these give the
        same on every way (transcendental functions may differ in the last digit between a kernel
        and the host). Kernels that users write are never contracted.
    log (``DPARRAY_LOG``): every kernel that is compiled, loaded or launched is named on the error
        stream.

Example:
    >>> import dparray as dp
    >>> with dp.config.override(debug=True):
    ...     dp.config.debug
    True
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from dparray import _hooks

_DEFAULTS: dict[str, Any] = {
    "debug": False,
    "lazy": True,
    "host_tier": True,
    "fp_contract": False,
    "log": False,
}
OPTIONS = tuple(_DEFAULTS)
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}

debug: bool
lazy: bool
host_tier: bool
fp_contract: bool
log: bool


def _from_environment(name: str, default: Any) -> Any:
    """The option's value in the environment, or its default."""
    variable = "DPARRAY_" + name.upper()
    text = os.environ.get(variable)
    if text is None:
        return default
    word = text.strip().lower()
    if word not in _TRUE | _FALSE:
        raise ValueError(
            f"{variable}={text!r} is neither true nor false; give one of "
            f"{sorted(_TRUE)} or {sorted(_FALSE - {''})}"
        )
    return word in _TRUE


def _checked(name: str, value: Any) -> Any:
    if name not in _DEFAULTS:
        raise AttributeError(f"dparray.config has no option {name!r}; options: {sorted(_DEFAULTS)}")
    expected = type(_DEFAULTS[name])
    if not isinstance(value, expected):
        raise TypeError(
            f"dparray.config.{name} takes a {expected.__name__}, not {value!r} "
            f"of type {type(value).__name__}"
        )
    return value


@contextmanager
def override(**options: Any) -> Iterator[None]:
    """Set options inside a ``with`` block and put the old values back after it.

    Raises:
        AttributeError: there is no such option.
        TypeError: the value is of another type than the option.

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
            _switch_log(value)


def _switch_log(is_on: bool) -> None:
    """Print events, or stop it; while nobody listens, a launch costs nothing more."""
    listening = _print_event in _hooks.subscribers
    if is_on and not listening:
        _hooks.subscribe(_print_event)
    elif listening and not is_on:
        _hooks.subscribers.remove(_print_event)


def _print_event(event: str, **values: Any) -> None:
    if event == "launch":
        extents = " x ".join(map(str, values["global_range"]))
        where = f"{extents} work-items on {values['queue'].sycl_device.name}"
        print(f"dparray: launch {values['kernel'].name}, {where}", file=sys.stderr)
    elif event == "compile":
        kernel, milliseconds = values["kernel"], 1e3 * values["seconds"]
        done = "compiled" if values["origin"] == "compiled" else "loaded from disk"
        print(f"dparray: {done} {kernel.name} in {milliseconds:.0f} ms", file=sys.stderr)


for _name, _default in _DEFAULTS.items():
    globals()[_name] = _from_environment(_name, _default)
sys.modules[__name__].__class__ = _Config
_switch_log(globals()["log"])
