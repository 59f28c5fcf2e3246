"""The log: a line on the error stream for each thing that happens, while ``config.log`` is on."""

from __future__ import annotations

import sys
import time
from typing import Any

from dparray import _hooks


def switch(is_on: bool) -> None:
    """Print events, or stop it; without subscribers, a launch costs nothing more."""
    listening = print_event in _hooks.subscribers
    if is_on and not listening:
        _hooks.subscribe(print_event)
    elif listening and not is_on:
        _hooks.subscribers.remove(print_event)


def print_event(event: str, **values: Any) -> None:
    """Say what happened, where, how many bytes were in it and which line asked for it."""
    text = _text(event, values)
    if text is None:
        return
    frame = _hooks.user_frame()
    line = ""
    if frame is not None:
        file = frame.f_code.co_filename.rpartition("/")[2]
        line = f" [{file}:{frame.f_lineno}]"
    print(f"dparray: {text}{line}", file=sys.stderr)


def _text(event: str, values: dict[str, Any]) -> str | None:
    if event == "launch":
        extents = " x ".join(map(str, values["global_range"]))
        place = values["queue"].sycl_device.name
        return f"launch {values['kernel'].name}, {extents} work-items on {place}"
    if event == "compile":
        done = "compiled" if values["origin"] == "compiled" else "loaded from disk"
        return f"{done} {values['kernel'].name} in {1e3 * values['seconds']:.0f} ms"
    if event == "build":
        took = time.perf_counter() - values["start"]
        place = values["queue"].sycl_device.name
        return f"built {values['kernel'].name} for {place} in {1e3 * took:.0f} ms"
    if event == "library":
        size = _size(values.get("nbytes", 0))
        return f"library {values['function']}{size} on {values['queue'].sycl_device.name}"
    if event == "host":
        if "function" not in values:
            return "host work of NumPy in the memory of the device"
        return f"host {values['function']}{_size(values['nbytes'])}, on the calling thread"
    if event == "copy":
        ends = [
            "the host" if end == "host" else end.sycl_device.name
            for end in (values["source"], values["target"])
        ]
        return f"copy{_size(values['nbytes'])} from {ends[0]} to {ends[1]}"
    if event == "wait":
        took = time.perf_counter() - values["start"]
        return f"wait {1e3 * took:.1f} ms for {values['queue'].sycl_device.name}"
    if event == "map":
        how = "staged" if values["staged"] else "no copy"
        return f"map {values['mode']!r}{_size(values['nbytes'])} ({how}), closed"
    return None


def _size(nbytes: int) -> str:
    return f" {nbytes} bytes" if nbytes else ""
