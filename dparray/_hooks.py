"""The event hook of tools: profiling, explain, progress bars and tests.

An event is a name and keyword values. Without subscribers, ``emit`` costs one test, so lower layers
may call it on the fast path.

Events, with their values:

- ``"compile"``: kernel, seconds, origin;
- ``"build"``: kernel, queue, start; the driver has built it;
- ``"defer"``: array; an expression is made;
- ``"evaluate"``: nodes; they are about to be computed;
- ``"launch"``: kernel, queue, driver_event, start, global_range, local_range, arguments, nbytes;
- ``"begin"``: queue; a ready kernel of dpnp's is about to run;
- ``"library"``: function, queue, start, because, usm_type; it was submitted;
- ``"host"``: queue, nbytes, because, usm_type before NumPy computes in USM memory, and queue,
  function, start, nbytes, because, usm_type after it;
- ``"allocate"``: queue, usm_type, nbytes, hit, asked, pointer, in_use;
- ``"copy"``: source, target, nbytes, start;
- ``"wait"``: queue, start;
- ``"map"``: queue, mode, nbytes, staged, start, seconds;
- ``"progress"``: task, done, total in bytes, while a large copy, save or load goes on.

``start`` is of ``time.perf_counter``. Events with a start are emitted at their end.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import os
import sys
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

_Result = TypeVar("_Result")
Subscriber = Callable[..., None]

subscribers: list[Subscriber] = []


def subscribe(subscriber: Subscriber) -> Callable[[], None]:
    """Call ``subscriber(event, **values)`` for every event; return a function that ends it."""
    subscribers.append(subscriber)

    def unsubscribe() -> None:
        if subscriber in subscribers:
            subscribers.remove(subscriber)

    return unsubscribe


def at_fork(**actions: Callable[[], object]) -> None:
    """Register actions as ``os.register_at_fork`` does, on systems that can fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(**actions)


_when_set: dict[str, list[Callable[[], None]]] = {}


def when_set(option: str, action: Callable[[], None]) -> None:
    """Call ``action`` whenever an option of :mod:`dparray.config` is set.

    Other names: ``"plans"``, an option of the process that decides about plans; ``"executor"``,
    which tests and measurements force; ``"tracing"``; ``"functions_in_force"`` of a placement;
    ``"implementations"`` of operations.
    """
    _when_set.setdefault(option, []).append(action)


def option_was_set(option: str) -> None:
    """Call the actions that :func:`when_set` registered."""
    for action in _when_set.get(option, ()):
        action()


#: Whether all work is traced. The compiled fast path reads this through `when_set("tracing")`, and
#: then computes through :func:`dparray._evaluate.host.call`, which emits the events.
is_tracing = False
_tracers = 0
#: Held while options change. Its holder takes no other lock.
changing = threading.RLock()


def trace(is_on: bool) -> None:
    """Start to trace all work, or end one earlier call of this function."""
    global is_tracing, _tracers
    with changing:
        _tracers += 1 if is_on else -1
        if is_tracing != bool(_tracers):
            is_tracing = bool(_tracers)
            option_was_set("tracing")


class Blocks:
    """The values of ``with`` blocks, for the thread or task inside and the tasks that it starts.

    Attributes:
        entered: the blocks of the current thread or task, the innermost last.
        in_force: the values that any thread or task sees.
    """

    def __init__(self, name: str, changed: Callable[[Any], object] = id) -> None:
        self.entered = contextvars.ContextVar[tuple[_Block, ...]](name, default=())
        self._changed = changed
        self.in_force: list[Any] = []

    @contextlib.contextmanager
    def enter(self, value: Any) -> Iterator[None]:
        """Enter a block. Its end removes only this block, even if generators interleave several."""
        own = _Block(self, value)
        self.entered.set((*self.entered.get(), own))
        self.count(value, value)
        try:
            yield
        finally:
            self.entered.set(tuple([each for each in self.entered.get() if each is not own]))
            del own

    def count(self, value: Any, *new: Any) -> None:
        """Remove or add a value that is active."""
        with changing:
            self.in_force = [*(each for each in self.in_force if each is not value), *new]
            self._changed(value)


class _Block:
    """A block, which ends when no thread or task sees it any more."""

    def __init__(self, blocks: Blocks, value: Any) -> None:
        self.blocks, self.value = blocks, value

    def __del__(self) -> None:
        self.blocks.count(self.value)


_apart = threading.local()


@contextlib.contextmanager
def events_disabled() -> Iterator[None]:
    """Hide the work of this thread from subscribers: measurements of the machine are not the
    program's work, and would clutter its log and its profile.
    """
    before = getattr(_apart, "are_events_disabled", False)
    _apart.are_events_disabled = True
    try:
        yield
    finally:
        _apart.are_events_disabled = before


def emit(event: str, **values: Any) -> None:
    """Pass an event to every subscriber."""
    if getattr(_apart, "are_events_disabled", False):
        return
    for subscriber in tuple(subscribers):
        subscriber(event, **values)


def begin(queue: Any) -> float:
    """Tell every subscriber that work on a queue begins; return the time."""
    emit("begin", queue=queue)
    return time.perf_counter()


#: The latest work of all threads: its name, its kind, the queue and the thread.
recent: deque[tuple[str, str, Any, int]] = deque(maxlen=128)

#: The latest calls that computed before they returned: the result, the function's name, the work.
_ran: deque[tuple[weakref.ref[Any], str, list[tuple[str, str, Any, int]]]] = deque(maxlen=64)


def latest_work() -> Any:
    """Return a marker of the latest work, for :func:`note_call`."""
    return recent[-1] if recent else None


def note_call(name: str, mark: Any, made: Any) -> None:
    """Record the work of the calling thread since ``mark`` for the arrays that a call created."""
    if not recent or recent[-1] is mark:
        return
    me, ran = threading.get_ident(), []
    try:
        for work in reversed(recent):
            if work is mark:
                break
            if work[3] == me:
                ran.append(work)
    except RuntimeError:  # Another thread appended to it.
        return
    if ran:
        for array in made if isinstance(made, tuple | list) else (made,):
            if hasattr(array, "usm_type"):
                _ran.append((weakref.ref(array), name, ran))


def call_that_made(array: Any) -> tuple[str, tuple[str, ...]]:
    """Return the name of the call that last returned an array, and its work; empty if unknown."""
    for made, name, ran in reversed(tuple(_ran)):
        if made() is array:
            counts = Counter([f"{work[1]} {work[0]}" for work in reversed(ran)])
            labels = [
                f"{each} ({count} times)" * (count > 1) or each for each, count in counts.items()
            ]
            return name, tuple(labels)
    return "", ()


_PACKAGE = str(Path(__file__).parent) + "/"
_KERNELS = str(Path(__file__).parents[1] / "kernels") + "/"
_DEMO = str(Path(__file__).parent / "cli" / "demo") + "/"  # treated as a user's program
# Modules between the program and the function that it called: they report on it, or copy for it.
_BETWEEN = tuple(
    _PACKAGE + each for each in ("_explain/", "_profile/", "_scheduling/eager_operands")
)
_BESIDE = {contextlib.__file__, functools.__file__, threading.__file__}


#: A file and a line in it.
Line = tuple[str, int]


@functools.lru_cache(maxsize=1024)
def _kind_of(file: str) -> str:
    """Classify a file: ``"program"``, ``"ours"``, or ``"between"`` a call and dparray's code."""
    is_ours = file.startswith((_PACKAGE, _KERNELS, "<dparray")) or file in _BESIDE
    if not is_ours or file.startswith(_DEMO):
        return "program"
    return "between" if file.startswith(_BETWEEN) else "ours"


def request(frame: FrameType | None = None) -> tuple[FrameType | None, str]:
    """Return the program's innermost frame, and the name of the dparray function that it called.

    The frame is ``None`` in a dparray thread. Only the stack has the line, so the name is read on
    the same walk. Names recorded by wrappers would cost each method 0.35 us: ``x[3:]`` would take
    0.52 us instead of 0.19, ``x.sum()`` 1.80 instead of 1.43.

    Args:
        frame: the frame to start at. Defaults to the caller's frame.
    """
    frame, entry, is_named = frame or sys._getframe(1), None, False
    while frame is not None and (kind := _kind_of(frame.f_code.co_filename)) != "program":
        if kind == "ours" and not is_named:
            entry = frame
        is_named = is_named or (kind == "between" and entry is not None)  # dp.explain is outside
        frame = frame.f_back
    if frame is None and (by := getattr(_apart, "by", _NOBODY)) is not _NOBODY:
        return None, by[1]
    name = "" if entry is None else entry.f_code.co_name
    if entry is not None and name == "__call__":  # a callable object
        name = getattr(entry.f_locals["self"], "__name__", name)
    if entry is not None and name == "__init__":  # a class
        name = type(entry.f_locals["self"]).__name__
    if name.startswith("_") and not name.startswith("__"):  # a private method behind a public name
        name = name[1:].removesuffix("_in_place").removesuffix("_method")
    return frame, name


def user_frame(frame: FrameType | None = None) -> FrameType | None:
    """Return the program's innermost frame, as :func:`request` does."""
    return request(frame or sys._getframe(1))[0]


def public_name() -> str:
    """Return the name of the dparray function that the program called."""
    return request(sys._getframe(1))[1]


def line_of(frame: Any) -> Line | None:
    """Return file and line of a frame; without one, the line on whose behalf the thread works."""
    if frame is None:
        return getattr(_apart, "by", _NOBODY)[0]
    return frame.f_code.co_filename, frame.f_lineno


def line_text(line: Line | None) -> str:
    """Return ``"script.py:12"``, or ``"cell 3:12"`` for a notebook cell."""
    if line is None:
        return ""
    file, number = line
    name = file.replace("\\", "/").rpartition("/")[2]
    if name.startswith("<ipython-input-"):
        name = "cell " + name.split("-")[2]
    elif "/ipykernel_" in file:
        name = "cell"
    return f"{name}:{number}"


#: The source line and the dparray function that request work.
Caller = tuple[Line | None, str]
_NOBODY: Caller = (None, "")


def caller() -> Caller:
    """Return the requester of work for another thread; without subscribers, nothing."""
    if not subscribers:
        return _NOBODY
    frame, name = request()
    return line_of(frame), name


@contextlib.contextmanager
def attributed_to(by: Caller) -> Iterator[None]:
    """Attribute this thread's work, which is dparray's, to the line that requested it."""
    _apart.by = by
    try:
        yield
    finally:
        _apart.by = _NOBODY


def carried(call: Callable[[], _Result]) -> Callable[[], _Result]:
    """Return a call for another thread that is attributed to this one and has its context."""
    by, are_events_disabled = caller(), getattr(_apart, "are_events_disabled", False)
    context = contextvars.copy_context()

    def call_on_behalf() -> _Result:
        quiet = events_disabled() if are_events_disabled else contextlib.nullcontext()
        with attributed_to(by), quiet:
            return context.run(call)

    return call_on_behalf
