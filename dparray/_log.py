"""The log: a line on the error stream for each launch, copy and compile; and notices."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from dparray import _hooks
from dparray._driver.descriptions import describe_queue

#: Return whether the current thread or task is logged; :mod:`dparray.config` sets the function.
is_on: Callable[[], bool] = bool


def switch(is_used: bool) -> None:
    """Start or stop printing events; without subscribers, a launch has no extra cost."""
    listening = print_event in _hooks.subscribers
    if is_used and not listening:
        _hooks.subscribe(print_event)
        _hooks.trace(True)
    elif listening and not is_used:
        _hooks.subscribers.remove(print_event)
        _hooks.trace(False)


_told: set[str] = set()


def notice(text: str) -> None:
    """Print a notice in a terminal or in Jupyter, once in a process."""
    stream = sys.stderr
    if text in _told or stream is None:
        return
    _told.add(text)
    if type(stream).__module__.startswith("ipykernel"):
        # Jupyter shows the error stream as a red block, which does not suit a notice.
        print(f"dparray: {text}", flush=True)
    elif stream.isatty():
        print(f"dparray: {text}", file=stream, flush=True)


def print_event(event: str, **values: Any) -> None:
    """Describe an event: the work, the queue, the bytes and the line that requested it."""
    text = _text(event, values) if is_on() else None
    if text is None:
        return
    line = _hooks.line_text(_hooks.line_of(_hooks.user_frame()))
    print(_printable(f"dparray: {text}{line and f' [{line}]'}"), file=sys.stderr)


def _printable(text: str) -> str:
    """Return one line of text without control characters, which file names may contain."""
    return "".join([each if each.isprintable() else repr(each)[1:-1] for each in text])


def _text(event: str, values: dict[str, Any]) -> str | None:
    if event == "launch":
        extents = " x ".join(map(str, values["global_range"]))
        size = _size(values["nbytes"])
        return f"launch {values['kernel'].name}{size}, {extents} work-items{_on(values['queue'])}"
    if event == "compile":
        done = "compiled" if values["origin"] == "compiled" else "loaded from disk"
        return f"{done} {values['kernel'].name} in {1e3 * values['seconds']:.0f} ms"
    if event == "build":
        took = _since(values["start"])
        return f"built {values['kernel'].name} in {took}{_on(values['queue'])}"
    if event == "library":
        if values["function"] == "an expression":  # Its operations were reported separately.
            took = _since(values["start"])
            return f"library: an expression computed in {took}{_on(values['queue'])}"
        return f"library {values['function']}{_size(values.get('nbytes', 0))}{_on(values['queue'])}"
    if event == "host":
        if "function" not in values:
            name = _hooks.public_name()
            return f"host {name}{_size(values['nbytes'])}, NumPy in memory{_on(values['queue'])}"
        return f"host {values['function']}{_size(values['nbytes'])}, on the calling thread"
    if event == "copy":
        source, target = (
            "the host" if end == "host" else describe_queue(end)
            for end in (values["source"], values["target"])
        )
        return f"copy{_size(values['nbytes'])} from {source} to {target}"
    if event == "wait":
        return f"wait of {_since(values['start'])}{_on(values['queue'])}"
    if event == "map":
        how = "staged" if values["staged"] else "no copy"
        size = _size(values["nbytes"])
        return f"map {values['mode']!r}{size} ({how}), closed{_on(values['queue'])}"
    return None


def _on(queue: Any) -> str:
    return f" on {describe_queue(queue)}"


def _since(start: float) -> str:
    return f"{1e3 * (time.perf_counter() - start):.1f} ms"


def _size(nbytes: int) -> str:
    return f" {nbytes} bytes" if nbytes else ""
