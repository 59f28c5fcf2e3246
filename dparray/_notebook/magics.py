"""The magics of ``%load_ext dparray``, and completion in IPython: devices, kernel options.

- ``%dp_time [-n] [-r REPEATS] STATEMENT``: time a statement on its device.
- ``%dp_device [NAME]``: list the devices, or set the default device.
- ``%dp_memory [release|reset_peak]``: show the memory pools.
- ``%%dp_explain`` and ``%dp_explain STATEMENT``: run code and report the kernels.
- ``%%dp_profile`` and ``%dp_profile STATEMENT``: run code, compute its arrays, and report where the
  time went.
"""

from __future__ import annotations

import argparse
import ast
import re
import time
from collections.abc import Callable, Iterable
from statistics import median
from types import CodeType
from typing import Any, NamedTuple, NoReturn

import numpy as np

from dparray import _hooks, config
from dparray._array.ndarray import ndarray
from dparray._evaluate import background
from dparray._explain.explain import explain
from dparray._functions.evaluation import eval as evaluate
from dparray._kernel.decorators import OPTIONS
from dparray._profile.profile import Profile, profile
from dparray._profile.report import arrays_in
from dparray._runtime import queues as queues_module
from dparray.device import (
    USM_TYPES,
    DeviceList,
    default_device,
    describe_queue,
    devices,
    set_default_device,
)
from dparray.exceptions import DeviceError
from dparray.memory import MemoryStats, pool
from dparray.memory.stats import format_bytes

_RESULT = "_dparray_result"

#: A measurement repeats until it has taken this long, within the limits on repetitions.
_SECONDS = 1.0
_FEWEST, _MOST = 5, 1000


class _UsageError(Exception):
    """Wrong arguments of a magic; the text shows the usage."""


class _Parser(argparse.ArgumentParser):
    """A parser that raises instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        raise _UsageError(f"{message}\n{self.format_usage()}")


# -- timing -------------------------------------------------------------------------------------


class Timing(NamedTuple):
    """A measurement of ``%dp_time``.

    Attributes:
        seconds: the device time of each run.
        place: the queue of the work.
        launches: the number of kernels that one run launches.
        numpy_seconds: the time of each run in NumPy; empty if not requested.
    """

    seconds: tuple[float, ...]
    place: str
    launches: int
    numpy_seconds: tuple[float, ...] = ()

    @property
    def median(self) -> float:
        """The median time of a run in seconds."""
        return median(self.seconds)

    @property
    def speedup(self) -> float | None:
        """The ratio of NumPy's time to dparray's; ``None`` if not requested."""
        return median(self.numpy_seconds) / self.median if self.numpy_seconds else None

    def __repr__(self) -> str:
        kernels = f"{self.launches} kernel{'s' * (self.launches != 1)}"
        text = f"{_spread(self.seconds)} on {self.place}, {kernels}"
        if self.speedup is not None:
            text += f"\n{_spread(self.numpy_seconds)} in NumPy: {self.speedup:.3g} times as long"
        return text


def _spread(seconds: tuple[float, ...]) -> str:
    runs = f"{len(seconds)} run{'s' * (len(seconds) != 1)}"
    return (
        f"{_duration(median(seconds))} median of {runs} "
        f"({_duration(min(seconds))} ... {_duration(max(seconds))})"
    )


def _duration(seconds: float) -> str:
    scale, unit = (1.0, "s") if seconds >= 1 else (1e3, "ms") if seconds >= 1e-3 else (1e6, "us")
    return f"{seconds * scale:.3g} {unit}"


def time_statement(
    statement: str,
    namespace: dict[str, Any],
    repeats: int | None = None,
    beside_numpy: bool = False,
) -> Timing:
    """Time a statement, including the evaluation of its arrays.

    It runs at least twice before the measurement, so that kernels are compiled and memory is in the
    pool. It reads ``namespace`` and writes to a copy of it.

    Args:
        statement: Python source.
        namespace: the names it uses.
        repeats: the number of measured runs; as many as fit into a second if ``None``.
        beside_numpy: whether to time it in NumPy too: arrays are copied to the host, and dparray's
            names are replaced by NumPy's.
    """
    code, names = _compiled(statement)
    scope = dict(namespace)
    queues = {x.queue for name in names for x in arrays_in(scope.get(name))}

    def run() -> None:
        exec(code, scope)
        arrays = [x for name in (_RESULT, *names) for x in arrays_in(scope.get(name))]
        evaluate(*arrays)
        queues.update(x.queue for x in arrays)
        for queue in queues:
            queues_module.wait(queue)

    launched: list[str] = []
    with config.override(background_compile=False):  # not after some runs without the kernel
        run()
        unsubscribe = _hooks.subscribe(
            lambda event, **values: launched.append(event) if event == "launch" else None
        )
        try:
            run()
        finally:
            unsubscribe()
    background.wait()
    seconds = _measured(run, repeats)
    places = sorted(map(describe_queue, queues)) or [str(default_device())]
    numpy_seconds: tuple[float, ...] = ()
    if beside_numpy:
        used = {name: _in_numpy(namespace[name]) for name in names if name in namespace}
        host_scope = {**namespace, **used}
        numpy_seconds = _measured(lambda: exec(code, host_scope), repeats)
    return Timing(seconds, " and ".join(places), len(launched), numpy_seconds)


def _compiled(statement: str) -> tuple[CodeType, list[str]]:
    """Compile a statement, whose value is assigned to an internal name; return its names too."""
    tree = ast.parse(statement.strip() or "pass")
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        target = ast.Name(_RESULT, ast.Store())
        tree.body[-1] = ast.copy_location(ast.Assign([target], last.value), last)
        ast.fix_missing_locations(tree)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return compile(tree, "<dp_time>", "exec"), sorted(names)


def _measured(run: Callable[[], None], repeats: int | None) -> tuple[float, ...]:
    run()
    seconds: list[float] = []
    while len(seconds) < (_MOST if repeats is None else repeats):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
        if repeats is None and len(seconds) >= _FEWEST and sum(seconds) > _SECONDS:
            break
    return tuple(seconds)


def _in_numpy(value: Any) -> Any:
    """Return NumPy's counterpart of a name: host arrays, functions of the same name."""
    if isinstance(value, ndarray):
        return value.asnumpy()
    if isinstance(value, list | tuple) and arrays_in(value):
        return type(value)(map(_in_numpy, value))
    name = getattr(value, "__name__", "")
    if name == "dparray":
        return np
    if name.startswith("dparray.") and hasattr(np, name[8:]):
        return getattr(np, name[8:])
    if str(getattr(value, "__module__", "")).partition(".")[0] == "dparray" and hasattr(np, name):
        return getattr(np, name)
    return value


# -- the magics ---------------------------------------------------------------------------------


_TIME_OPTIONS = ("-n", "-r", "--numpy", "--repeats")


def _magic_time(shell: Any, line: str, cell: str | None = None) -> Timing | None:
    parser = _Parser(prog="%dp_time", add_help=False)
    parser.add_argument("-n", "--numpy", action="store_true")
    parser.add_argument("-r", "--repeats", type=int)
    parser.add_argument("statement", nargs=argparse.REMAINDER)
    options, statement = _options_before(line)
    parsed = parser.parse_args(options)
    statement = "\n".join(filter(None, (statement, cell)))
    if not statement.strip():
        raise _UsageError("%dp_time [-n] [-r REPEATS] STATEMENT   (-n: also time NumPy)")
    if parsed.repeats is not None and parsed.repeats < 1:
        raise _UsageError(f"%dp_time: -r {parsed.repeats}: at least one run is needed")
    return time_statement(statement, shell.user_ns, parsed.repeats, parsed.numpy)


def _options_before(line: str) -> tuple[list[str], str]:
    """Return the options at the start of a line, and the statement behind, with its spaces."""
    options: list[str] = []
    rest = line.strip()
    while match := re.match(r"(-r|--repeats)\s+(\S+)\s*|(--?[a-z][\w=-]*)\s*", rest):
        options += [part for part in match.groups() if part]
        rest = rest[match.end() :]
    return options, rest


def _magic_device(shell: Any, line: str) -> DeviceList | None:
    name = line.strip().strip("\"'")
    if not name:
        return devices()
    try:
        set_default_device(shell.user_ns.get(name, name))
    except DeviceError as error:
        raise _UsageError(str(error)) from None
    print(f"arrays are created on {default_device()} now; operations follow their inputs")
    return None


_MEMORY_ACTIONS = ("release", "reset_peak")


def _magic_memory(shell: Any, line: str) -> MemoryStats:
    action = line.strip()
    if action == "release":
        print(f"{format_bytes(pool.release())} given back")
    elif action == "reset_peak":
        pool.reset_peak()
    elif action:
        raise _UsageError(f"%dp_memory [{' | '.join(_MEMORY_ACTIONS)}]")
    return pool.stats()


def _magic_explain(shell: Any, line: str, cell: str | None = None) -> Any:
    statement = "\n".join(filter(None, (line.strip(), cell)))
    if not statement.strip():
        raise _UsageError("%dp_explain EXPRESSION, or a cell under %%dp_explain")
    code, _ = _compiled(statement)
    # The cell is user code: its assignments persist, as after any other cell.
    exec(code, shell.user_ns)
    result = shell.user_ns.pop(_RESULT, None)
    if not isinstance(result, ndarray):
        raise _UsageError("%%dp_explain: the last line of the cell must be an array")
    return explain(result)


def _magic_profile(shell: Any, line: str, cell: str | None = None) -> Profile:
    statement = "\n".join(filter(None, (line.strip(), cell)))
    if not statement.strip():
        raise _UsageError("%dp_profile STATEMENT, or a cell under %%dp_profile")
    source = shell.transform_cell(statement)
    code = compile(source, "cell", "exec")
    # Called from the cell's last line, to which the work is attributed.
    rest = compile("\n" * (len(source.splitlines()) - 1) + "compute()", "cell", "exec")

    def compute() -> None:
        pending = recorded.pending
        evaluate(*pending)
        for queue in {x.queue for x in pending}:
            queues_module.wait(queue)

    with profile() as recorded:
        exec(code, shell.user_ns)  # Its assignments persist, as after any other cell.
        exec(rest, {"compute": compute})
    return recorded


_MAGICS: dict[str, tuple[Callable[..., Any], str]] = {
    "dp_time": (_magic_time, "line_cell"),
    "dp_device": (_magic_device, "line"),
    "dp_memory": (_magic_memory, "line"),
    "dp_explain": (_magic_explain, "line_cell"),
    "dp_profile": (_magic_profile, "line_cell"),
}


def register(shell: Any) -> None:
    """Add the magics and the completion."""
    for name, (function, kind) in _MAGICS.items():
        shell.register_magic_function(_reporting(shell, function), kind, name)
    if _complete not in shell.Completer.custom_matchers:
        shell.Completer.custom_matchers.append(_complete)


def unregister(shell: Any) -> None:
    """Remove everything that :func:`register` added."""
    for name in _MAGICS:
        for kind in ("line", "cell"):
            shell.magics_manager.magics[kind].pop(name, None)
    if _complete in shell.Completer.custom_matchers:
        shell.Completer.custom_matchers.remove(_complete)


def _reporting(shell: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a magic so that usage errors are shown as one line without a traceback."""
    from IPython.core.error import UsageError

    def magic(line: str, *cell: str) -> Any:
        try:
            return function(shell, line, *cell)
        except _UsageError as error:
            raise UsageError(str(error)) from None

    magic.__doc__ = function.__doc__
    return magic


# -- completion ---------------------------------------------------------------------------------


def device_names() -> list[str]:
    """Return the filter strings of this machine's devices, the shortest first."""
    names: set[str] = set()
    for device in devices():
        kind = device.device_type
        names |= {kind, f"{device.backend}:{kind}", device.filter_string}
    return sorted(names, key=lambda name: (len(name), name))


class _Completion(NamedTuple):
    """Return words that complete a line which matches the pattern, from its group ``start`` on."""

    pattern: re.Pattern[str]
    kind: str
    words: Callable[[], Iterable[str]]


def _completion(before: str, start: str, kind: str, words: Callable[[], Iterable[str]]) -> Any:
    return _Completion(re.compile(f"{before}(?P<start>{start})$", re.VERBOSE), kind, words)


# The arguments of a call before the one being typed, with nested calls.
_ARGUMENTS = r"(?: (?: [^()] | \([^()]*\) )* , \s* )?"

_COMPLETIONS: tuple[_Completion, ...] = (
    _completion(
        r"""(?: %dp_device \s+ ["']?
          | (?: device \s* = \s* | (?:Device|use_device|to_device|set_default_device) \( \s* ) ["']
          )""",
        r"[\w:]*",
        "device",
        device_names,
    ),
    _completion(r"""usm_type \s* = \s* ["']""", r"\w*", "USM type", lambda: USM_TYPES),
    _completion(
        rf"(?<!\w) (?:\w+\.)* kernel \( {_ARGUMENTS}",
        r"\w*",
        "option",
        lambda: [f"{name}=" for name in ("range", *OPTIONS)],
    ),
    _completion(
        rf"(?<!\w) (?:\w+\.)* device_func \( {_ARGUMENTS}",
        r"\w*",
        "option",
        lambda: [f"{name}=" for name in OPTIONS],
    ),
    _completion(
        rf"\b config\.override \( {_ARGUMENTS}",
        r"\w*",
        "option",
        lambda: [f"{name}=" for name in config.OPTIONS],
    ),
    _completion(r"%dp_memory \s+", r"\w*", "action", lambda: _MEMORY_ACTIONS),
    _completion(r"%%?dp_time \s+ (?: -\S+ \s+ )*", r"-[\w-]*", "option", lambda: _TIME_OPTIONS),
)


def _complete(context: Any) -> Any:
    from IPython.core.completer import SimpleCompletion

    typed = context.text_until_cursor
    for completion in _COMPLETIONS:
        match = completion.pattern.search(typed)
        if match:
            kind = completion.kind
            words = [word for word in completion.words() if word.startswith(match["start"])]
            return {
                "completions": [SimpleCompletion(text=word, type=kind) for word in words],
                "matched_fragment": match["start"],
                "suppress": bool(words),
            }
    return {"completions": []}


# Set like IPython's `context_matcher` decorator does, without importing IPython.
_complete.matcher_api_version = 2  # type: ignore[attr-defined]
_complete.matcher_identifier = "dparray"  # type: ignore[attr-defined]
