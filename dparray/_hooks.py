"""The one event hook that tools subscribe to: profiling, explain, progress bars and tests.

An event is a name and keyword values. With no subscriber, ``emit`` costs one truth test, so
layers below may call it on the warm path.

Events: ``"compile"`` (kernel, seconds, origin), ``"launch"`` (kernel, queue, sycl_event,
global_range, local_range, arguments), ``"library"`` (function) before a ready kernel of dpnp's,
``"host"`` (queue) before NumPy computes in USM memory, ``"allocate"`` (queue, usm_type, nbytes,
hit), ``"copy"`` (source, target, nbytes),
``"progress"`` (task, done, total) in bytes, while a large copy, save or load goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Subscriber = Callable[..., None]

subscribers: list[Subscriber] = []


def subscribe(subscriber: Subscriber) -> Callable[[], None]:
    """Call ``subscriber(event, **values)`` for every event; returns a function that ends it."""
    subscribers.append(subscriber)

    def unsubscribe() -> None:
        if subscriber in subscribers:
            subscribers.remove(subscriber)

    return unsubscribe


def emit(event: str, **values: Any) -> None:
    """Tell every subscriber that ``event`` happened."""
    for subscriber in tuple(subscribers):
        subscriber(event, **values)
