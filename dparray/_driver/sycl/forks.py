"""Forks: a child process has none of SYCL's threads, so it may not use devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dparray._driver import marks
from dparray._driver.sycl import in_order
from dparray._driver.sycl.exits import leave_without_destructors
from dparray._driver.sycl.order import Order, forget_at_exit, used_queues


def locks() -> tuple[Any, ...]:
    return (in_order.lock, marks.lock)


def forbid(refuse: Callable[..., Any]) -> None:
    Order.before_launch = refuse  # type: ignore[method-assign]
    in_order.refuse_with(refuse)
    forget_at_exit()
    leave_without_destructors()


def queues_in_use() -> list[Any]:
    return used_queues()
