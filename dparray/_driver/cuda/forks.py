"""Forks: a child process has no contexts, so it may not use devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dparray._driver import marks
from dparray._driver.cuda import context, queues
from dparray._driver.cuda.order import Order
from dparray._driver.cuda.queues import Queue


def queues_in_use() -> list[Queue]:
    return [queue for queue in tuple(queues.created) if queue.order.count > Order.count]


def locks() -> tuple[Any, ...]:
    return (context.lock, marks.lock)


def forbid(refuse: Callable[..., Any]) -> None:
    Order.before_launch = refuse  # type: ignore[method-assign]
    context.refuse_with(refuse)
