"""Rich displays of arrays, devices, kernels and errors in notebooks.

Classes use these as their ``_repr_html_`` (:mod:`dparray._notebook.shown`). A rich display is HTML
in the colors of the page, so it is readable on light and dark pages. It has no JavaScript and no
external references. It shows a sample of an array, so an array of any size displays immediately,
and a pending array stays pending.

``%load_ext dparray`` adds the magics (see :mod:`dparray._notebook.magics`) and progress bars, and
shows the table of a placement error under its traceback.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from dparray import _layout
from dparray._array.ndarray import ndarray
from dparray._array.printing import corner, summary_threshold
from dparray._evaluate import peek
from dparray._explain import svg
from dparray._explain.explain import Explanation
from dparray._functions.user_functions import ElementwiseFunction, ReductionFunction
from dparray._graph.node import pending_order
from dparray._kernel.function import KernelFunction
from dparray._language.device_function import DeviceFunction
from dparray._notebook import pictures
from dparray._notebook.progress import Progress
from dparray._profile.report import counted
from dparray._runtime.queues import is_idle
from dparray.device import Device, DeviceList, default_device, describe_queue
from dparray.exceptions import ExecutionPlacementError
from dparray.memory.stats import MemoryStats, PoolStats, format_bytes

__all__ = ["load_ipython_extension", "unload_ipython_extension"]

_EDGE = "rgba(128,128,128,.45)"
_CARD = (
    f"display:inline-block;border:1px solid {_EDGE};border-radius:6px;padding:8px 12px;"
    "max-width:100%;box-sizing:border-box;overflow-x:auto;background:transparent;color:inherit;"
    "font-size:13px;line-height:1.45"
)
_TABLE = "border-collapse:collapse;border:none;margin:0;background:transparent;font-size:inherit"
_ROW = "background:transparent;border:none"
_CELL = (
    "text-align:left;vertical-align:top;border:none;padding:1px 14px 1px 0;background:transparent"
)
_HEAD = f"{_CELL};font-weight:600;border-bottom:1px solid {_EDGE}"
_NAME = f"{_CELL};opacity:.7;font-weight:normal;white-space:nowrap"
_CODE = (
    "margin:6px 0 0;padding:0;white-space:pre;background:transparent;color:inherit;border:none;"
    "font-family:monospace;font-size:12px;line-height:1.35"
)
_TITLE = "font-weight:600;margin-bottom:3px"
_FAINT = "opacity:.7;font-size:12px"


# -- pieces -------------------------------------------------------------------------------------


class _Html(str):
    """Text that is already HTML."""


def _html(value: Any) -> str:
    return value if isinstance(value, _Html) else escape(str(value))


def _code(text: str) -> _Html:
    style = "background:transparent;color:inherit;padding:0"
    return _Html(f'<code style="{style}">{escape(text)}</code>')


def _card(title: Any, *parts: str) -> str:
    heading = f'<div style="{_TITLE}">{_html(title)}</div>' if title else ""
    return f'<div style="{_CARD}">{heading}{"".join(parts)}</div>'


def _unbroken(text: str) -> str:
    """Return the text on one line, without wrapping."""
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def _titled(text: str, kind: str) -> _Html:
    """Return a title, followed by a pale description."""
    beside = f"{_FAINT};font-weight:normal;margin-left:6px"
    return _Html(f'{escape(text)} <span style="{beside}">{escape(kind)}</span>')


def _facts(rows: Iterable[tuple[str, Any]]) -> str:
    """Return a table of names and values; rows with ``None`` are omitted."""
    body = "".join(
        f'<tr style="{_ROW}"><th style="{_NAME}">{escape(name)}</th>'
        f'<td style="{_CELL}">{_html(value)}</td></tr>'
        for name, value in rows
        if value is not None
    )
    return f'<table style="{_TABLE}"><tbody>{body}</tbody></table>'


def _table(heads: Sequence[str], rows: Iterable[Sequence[Any]], numbers: bool = False) -> str:
    """Return a table with headers; numeric columns except the first are right-aligned."""

    def style(column: int, left: str) -> str:
        number = numbers and column
        return left.replace("left", "right") + ";white-space:nowrap" if number else left

    head = "".join(
        f'<th style="{style(column, _HEAD)}">{escape(text)}</th>'
        for column, text in enumerate(heads)
    )
    body = "".join(
        f'<tr style="{_ROW}">'
        + "".join(
            f'<td style="{style(column, _CELL)}">{_html(value)}</td>'
            for column, value in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return (
        f'<table style="{_TABLE}"><thead><tr style="{_ROW}">{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def _folded(summary: str, text: str) -> str:
    return (
        f'<details><summary style="cursor:pointer;{_FAINT}">{escape(summary)}</summary>'
        f'<pre style="{_CODE}">{escape(text)}</pre></details>'
    )


def _place_and_queue(description: str) -> tuple[str, str]:
    """Split ``describe_queue``'s text into the device and the queue."""
    device, _, queue = description.rpartition(", ")
    return device, queue


# -- arrays -------------------------------------------------------------------------------------


def array_html(x: ndarray) -> str:
    """Return the rich display of an array: description, device, a corner of its values and a
    picture.

    The values are a sample, read from the device; a pending array stays pending. Waits for the work
    on the sampled values.
    """
    device, queue = _place_and_queue(describe_queue(x.queue))
    facts = _facts(
        (
            ("device", device),
            ("queue", queue),
            ("USM type", x.usm_type),
            ("bytes", _bytes_text(x)),
            ("values", _state_text(x)),
        )
    )
    picture = _picture_of(x)
    side = f'<div style="flex:none">{picture}</div>' if picture else ""
    options = _print_options(x.ndim)
    values = np.array2string(
        corner(x, options),
        separator=", ",
        max_line_width=100,
        edgeitems=options["edgeitems"],
        precision=options["precision"],
        threshold=summary_threshold(x, options),
    )
    return _card(
        _titled(f"{x.shape} {x.dtype}", "dparray.ndarray"),
        '<div style="display:flex;flex-wrap:wrap;gap:8px 20px;align-items:flex-start">'
        f'<div style="max-width:330px">{facts}</div>{side}</div>',
        f'<pre style="{_CODE}">{escape(values)}</pre>',
    )


def _print_options(ndim: int) -> dict[str, int]:
    """Return NumPy's print options, limited so that the display stays small."""
    own = np.get_printoptions()
    return {
        "edgeitems": min(own["edgeitems"], 3 if ndim < 3 else 1),
        "precision": min(own["precision"], 5),
        "threshold": min(own["threshold"], 100 if ndim < 3 else 30),
    }


def _bytes_text(x: ndarray) -> str:
    text = format_bytes(x.nbytes)
    if x.is_pending or _layout.is_contiguous(x.shape, x.strides, x.itemsize):
        return text
    return f"{text}, seen with strides {x.strides} in a block of {format_bytes(x.block.nbytes)}"


def _state_text(x: ndarray) -> str:
    if x.is_pending:
        return _pending_text(x)
    return "computed" if is_idle(x.queue) else "submitted: its queue is still working"


def _pending_text(x: ndarray) -> str:
    """Return ``pending: multiply, add (2 operations)``."""
    order = pending_order([x._node])
    names = list(dict.fromkeys(node.op.name for node in order if node.op is not None))
    shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
    return f"pending: {shown} ({counted(len(order), 'operation')})"


def _thinned(x: ndarray, most: tuple[int, ...]) -> np.ndarray:
    """Return at most ``most`` evenly spaced elements along each axis."""
    steps = [max(-(-extent // limit), 1) for extent, limit in zip(x.shape, most, strict=True)]
    return peek.read(x._node, tuple(slice(None, None, step) for step in steps))


def _picture_of(x: ndarray) -> str:
    """Return a picture with its caption, or nothing if it would not help."""
    if x.ndim == 1 and x.size >= 8:
        values = pictures.real(_thinned(x, pictures.LINE_SAMPLES))
        picture = pictures.sparkline(values)
    elif x.ndim == 2 and min(x.shape) >= 4:
        values = pictures.real(_thinned(x, pictures.MAP_SAMPLES))
        picture = pictures.heat_map(values, x.shape)
    elif x.ndim == 3 and x.shape[2] in (3, 4) and min(x.shape[:2]) >= 8 and x.dtype.kind in "uif":
        values = _thinned(x, pictures.IMAGE_SAMPLES)
        picture = pictures.image(values, x.shape)
    else:
        return ""
    limits = pictures.finite_range(pictures.real(values))
    if limits is None:
        return ""
    of = "" if values.size == x.size else f" in {values.size} samples"
    magnitude = "magnitude " if x.dtype.kind == "c" else ""
    caption = f"{magnitude}{limits[0]:.4g} ... {limits[1]:.4g}{of}"
    return f'{picture}<div style="{_FAINT}">{escape(caption)}</div>'


# -- devices ------------------------------------------------------------------------------------


def device_html(device: Device) -> str:
    """Return the rich display of a device: name, properties, and the queue that represents it."""
    place, queue = _place_and_queue(str(device))
    traits = device.traits
    return _card(
        device.name,
        _facts(
            (
                ("device", place),
                ("queue", queue),
                ("type", f"{device.device_type}, {device.backend}"),
                ("compute units", traits.units),
                ("work-group", f"at most {traits.group} work-items"),
                ("global memory", format_bytes(traits.memory)),
                ("local memory", format_bytes(traits.local_memory)),
                ("USM types", ", ".join(device.usm_types)),
                ("float64", "yes" if device.has_fp64 else "no"),
                ("float16", "yes" if device.has_fp16 else "no"),
                ("driver", device.driver_version),
                ("default", "yes" if device == default_device() else "no"),
            )
        ),
    )


def devices_html(devices: DeviceList) -> str:
    """Return the table of several devices."""
    if not devices:
        return _card("no device that can hold arrays; `dparray doctor` reports the missing part")
    default = default_device()
    return _card(
        "devices",
        _table(
            ("device", "name", "units", "memory", "USM types", "float64", "default"),
            (
                (
                    device,
                    device.name,
                    device.traits.units,
                    _unbroken(format_bytes(device.traits.memory)),
                    ", ".join(device.usm_types),
                    "yes" if device.has_fp64 else "no",
                    "✓" if device == default else "",
                )
                for device in devices
            ),
        ),
    )


# -- memory -------------------------------------------------------------------------------------


def memory_html(stats: MemoryStats) -> str:
    """Return the table of the memory pools, with bars of used and cached memory."""
    most = max((pool.in_use + pool.cached for pool in stats.pools), default=0)

    def row(name: str, counters: PoolStats | MemoryStats, bar: str) -> tuple[Any, ...]:
        return (
            name,
            format_bytes(counters.in_use),
            format_bytes(counters.cached),
            format_bytes(counters.peak),
            counters.hits,
            counters.misses,
            _Html(bar),
        )

    rows = [row(f"{pool.device}, {pool.usm_type}", pool, _bar(pool, most)) for pool in stats.pools]
    if len(rows) != 1:
        rows.append(row("total", stats, ""))
    return _card(
        "memory pools",
        _table(("pool", "in use", "cached", "peak", "hits", "misses", ""), rows, numbers=True),
        f'<div style="{_FAINT}">limit: {format_bytes(stats.limit)}</div>',
    )


def _bar(pool: PoolStats, most: int) -> str:
    """Return bars of used (solid) and cached (pale) memory, on the scale of the largest pool."""
    piece = '<span style="display:inline-block;height:9px;width:{}px;background:{}"></span>'
    scale = 120 / most if most else 0
    return (
        f'<span style="display:inline-block;width:122px;text-align:left;white-space:nowrap">'
        f"{piece.format(round(pool.in_use * scale), '#3a86c8')}"
        f"{piece.format(round(pool.cached * scale), 'rgba(58,134,200,.35)')}</span>"
    )


# -- kernels ------------------------------------------------------------------------------------


def kernel_html(kernel: KernelFunction) -> str:
    """Return the rich display of a kernel: its source line, and the compiled signatures."""
    seconds = kernel.compile_seconds
    compiled = (
        _table(
            ("compiled for", "took"),
            (
                (_code(", ".join(types)), _unbroken(f"{took:.2f} s"))
                for types, took in seconds.items()
            ),
        )
        if seconds
        else f'<div style="{_FAINT}">not compiled yet; compiled at the first launch</div>'
    )
    facts = _facts((("kernel", kernel.location), ("options", kernel.options or None)))
    return _card(_signature(kernel), facts, compiled, _source(kernel))


def function_html(function: DeviceFunction | ElementwiseFunction | ReductionFunction) -> str:
    """Return the rich display of a device function, or of an array function made from one."""
    kind = repr(function).removeprefix("<dparray ").removesuffix(f" {function.__qualname__}>")
    code = function.py_func.__code__
    facts = _facts(((kind, f"{code.co_filename}:{code.co_firstlineno}"),))
    return _card(_signature(function), facts, _source(function))


def _signature(function: Any) -> str:
    names = function.py_func.__code__.co_varnames[: function.py_func.__code__.co_argcount]
    return f"{function.__name__}({', '.join(names)})"


def _source(function: Any) -> str:
    import inspect

    try:
        return _folded("source", inspect.getsource(function.py_func))
    except OSError:  # typed at a prompt that does not keep source
        return ""


# -- explanations -------------------------------------------------------------------------------


def explanation_html(plan: Explanation) -> str:
    """Return the rich display of an explanation: the graph, and a row for each step."""
    device, queue = _place_and_queue(plan.queue)
    count = sum(operation.kernel is not None for operation in plan.operations)
    work = f"{counted(count, 'operation')} in {counted(len(plan.kernels), 'step')}"
    traffic = f"reads {format_bytes(plan.bytes_read)}, writes {format_bytes(plan.bytes_written)}"
    facts = _facts(
        (
            ("device", device),
            ("queue", queue),
            ("USM type", plan.usm_type),
            ("values", f"pending: {work}" if plan.is_pending else "computed: nothing is pending"),
            ("memory", traffic if plan.is_pending else None),
        )
    )
    title = _titled(f"{plan.shape} {plan.dtype}", "dp.explain")
    if not plan.is_pending:
        return _card(title, facts)
    graph = pictures.drawing(plan.svg(), "graph of operations")
    steps = _table(
        ("step", "how", "operations", "result", "reads", "writes", "why"),
        (
            (
                _Html(f"{_swatch(svg.color(step.number))}\N{NO-BREAK SPACE}{step.number}"),
                f"{step.tier}, kernel {step.state}" if step.tier == "fused" else step.tier,
                len(step.operations),
                _unbroken(f"{step.dtype} {step.shape}"),
                _unbroken(format_bytes(step.bytes_read)),
                _unbroken(format_bytes(step.bytes_written)),
                f"{step.reason}; stored because {step.stored_because}"
                if step.stored_because
                else step.reason,
            )
            for step in plan.kernels
        ),
    )
    return _card(
        title,
        facts,
        f'<div style="max-height:560px;overflow:auto;margin:6px 0">{graph}</div>',
        steps,
        _folded("operations", str(plan)),
        _folded("source of the kernels", plan.source) if plan.source else "",
    )


def _swatch(color: str) -> str:
    return f'<span style="display:inline-block;width:9px;height:9px;background:{color}"></span>'


# -- errors -------------------------------------------------------------------------------------


def placement_html(error: ExecutionPlacementError) -> str:
    """Return the table of a placement error: each argument with its device, and which to move."""
    if not error.operands:
        return _card(str(error))
    heading = str(error).partition(":\n")[0]
    cures = {cure.partition(" ")[0]: cure for cure in error.remedy.split("; ") if cure}
    place = error.operands[0][1:]
    rows = [
        (
            name,
            device,
            queue,
            _code(cures[name]) if name in cures and (device, queue) != place else "stays",
        )
        for name, device, queue in error.operands
    ]
    return _card(heading, _table(("argument", "device", "queue", "what to do"), rows))


# -- in IPython ---------------------------------------------------------------------------------

_progress: list[Progress] = []


def _after_cell(result: Any) -> None:
    """Remove progress bars, and show the table of a placement error that ended the cell."""
    for progress in _progress:
        progress.close()
    error = result.error_in_exec
    if isinstance(error, ExecutionPlacementError) and _is_notebook():
        from IPython.display import HTML, display

        display(HTML(placement_html(error)))


def _is_notebook() -> bool:
    from IPython.core.getipython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None


def load_ipython_extension(shell: Any) -> None:
    """Called by ``%load_ext dparray``.

    Adds the magics, the completion of device names and progress bars for long work. Shows the table
    of a placement error below its traceback if the front end shows HTML.
    """
    from dparray._notebook.magics import register

    register(shell)
    if not _progress:
        _progress.append(Progress())
    shell.events.register("post_run_cell", _after_cell)


def unload_ipython_extension(shell: Any) -> None:
    """Called by ``%unload_ext dparray``."""
    from dparray._notebook.magics import unregister

    unregister(shell)
    while _progress:
        _progress.pop().stop()
    if _after_cell in shell.events.callbacks["post_run_cell"]:
        shell.events.unregister("post_run_cell", _after_cell)
