"""Small stores to memory at work are put off, and nobody sees that they were.

A kernel that the test holds back keeps the memory at work, so nothing here depends on time.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import dpnp
import numpy as np
import pytest

import dparray as dp
from dparray._evaluate import background, cost_model, limits, schedule, stores
from dparray._runtime.order import order_of
from tests.support import held, stores_together

EXTENT = 300


def statements(u: Any, v: Any) -> None:
    u[0, :] = 0
    u[:, -1] = u[:, -2]
    v[0, :] = u[1, :] + 1
    v[-1, 3:9] = v[0, 2:8] * 0.5
    u[0, 0] = 5


def grids(queue: Any, count: int = 2) -> tuple[list[np.ndarray], list[dp.ndarray]]:
    theirs = [
        np.random.default_rng(at).integers(0, 9, (EXTENT, EXTENT)) * 1.0 for at in range(count)
    ]
    ours = [dp.asarray(each, sycl_queue=queue) for each in theirs]
    with limits.force("fused"):
        for module, (u, v) in ((np, theirs[:2]), (dp, ours[:2])):
            statements(u, v)
            assert module
    dp.synchronize(ours[0])
    return theirs, ours


def put_off(queue: Any) -> int:
    batch = order_of(queue).ahead
    return len(batch.stores) if batch is not None else 0


ASKS: dict[str, Callable[[dp.ndarray], Any]] = {
    "all": lambda u: u.asnumpy(),
    "a number": lambda u: float(u[0, 0]),
    "a sum": lambda u: float(u.sum()),
    "a map": lambda u: u.map("r").close(),
    "a copy": lambda u: u.copy().asnumpy(),
    "the end of all work": lambda u: dp.synchronize(u),
    "an event": lambda u: u.event.wait(),
    "another library": lambda u: dpnp.asnumpy(dpnp.asarray(u) + 0),
    "a view of NumPy's": lambda u: np.from_dlpack(u, device="cpu"),
    "another thread": lambda u: _in_thread(u.asnumpy),
    "a file": lambda u: u.tobytes(),
}


def _in_thread(function: Callable[[], Any]) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


@pytest.fixture
def dear_launches() -> Iterator[None]:
    """A cost model that leaves all small work to the host, whatever was measured."""
    model = cost_model.DEFAULT._replace(launch=1e-3)._asdict()
    with dp.config.override(cost_model=model):
        yield


@pytest.mark.usefixtures("dear_launches")
@pytest.mark.parametrize("what", ASKS)
def test_who_asks_for_the_memory_sees_them(queue: Any, what: str) -> None:
    theirs, (u, v) = grids(queue)
    with held(queue, u[5], v[5]):
        statements(u, v)
        assert put_off(queue) == 5
    ASKS[what](u)
    assert put_off(queue) == 0
    theirs[0][5, 0] = theirs[1][5, 0] + 1
    statements(*theirs)
    np.testing.assert_array_equal(u.asnumpy(), theirs[0])
    np.testing.assert_array_equal(v.asnumpy(), theirs[1])


def test_a_later_kernel_comes_after_them(queue: Any) -> None:
    theirs, (u, v) = grids(queue)
    with limits.force("fused"):
        dp.eval(u * 2 + v)
    with held(queue, u[5], v[5]):
        statements(u, v)
        w = u * 2 + v
        u[1, :] = 7
        assert put_off(queue) == 2  # the sum, which comes after the others, and the row
        del u
    theirs[0][5, 0] = theirs[1][5, 0] + 1
    statements(*theirs)
    np.testing.assert_array_equal(w.asnumpy(), theirs[0] * 2 + theirs[1])


def test_shared_memory_is_not_put_off(queue: Any) -> None:
    _, (u, v) = grids(queue)
    theirs = dpnp.asarray(u)
    with held(queue, u[5], v[5]):
        u[0, :] = 3
        assert put_off(queue) == 0
    np.testing.assert_array_equal(dpnp.asnumpy(theirs[0]), np.full(EXTENT, 3.0))


LINES = ["u[0] = u[1] + 1", "v[0] = u[0] * 2", "u[:, -1] = v[:, 0]", "v[-1] = u[0] + v[0]"]


@pytest.mark.usefixtures("fused")
@pytest.mark.parametrize("what", ["submit_launch", "order_of", "note_work", "_place_of", "_made"])
@pytest.mark.parametrize("at", [0, 1, 5])
def test_an_interrupt_loses_no_statement_before_it(
    queue: Any, what: str, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes where one of these is called: while a store is put off, or all are launched."""
    called, calls = getattr(stores, what), 0

    def interrupted(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at + 1:
            raise KeyboardInterrupt
        return called(*arguments, **options)

    theirs, (u, v) = grids(queue)
    for line in LINES:
        exec(line, {"u": u, "v": v})
        exec(line, {"u": theirs[0], "v": theirs[1]})
    dp.synchronize(queue)
    stores._sequences.clear()
    if what == "submit_launch":
        monkeypatch.setattr(stores, "_sequence_of", lambda *_: None)
    monkeypatch.setattr(stores, what, interrupted)
    done = 0
    with contextlib.suppress(KeyboardInterrupt):
        for line in LINES:
            exec(line, {"u": u, "v": v})
            done += 1
        dp.synchronize(queue)
    found = u.asnumpy(), v.asnumpy()
    allowed = []
    for line in [*LINES[:done], "", *LINES[done : done + 1]]:
        if not line:  # all before the interrupted one; that is done as a whole, or not at all
            allowed.append([each.copy() for each in theirs])
        exec(line, {"u": theirs[0], "v": theirs[1]})
    allowed.append(theirs)
    assert any(all(map(np.array_equal, found, each)) for each in allowed)


@pytest.mark.usefixtures("fused")
def test_a_store_is_not_repeated_after_an_interrupt(
    queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = stores.submit_launch

    def interrupted(*arguments: Any, **options: Any) -> Any:
        event = called(*arguments, **options)
        os.kill(os.getpid(), signal.SIGINT)
        return event

    u = dp.zeros((300, 300), sycl_queue=queue)
    u[0] += 1
    dp.synchronize(queue)
    u[0] += 1
    assert put_off(queue) == 1
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(stores, "submit_launch", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            dp.synchronize(queue)
    finally:
        signal.signal(signal.SIGINT, before)
    monkeypatch.undo()
    assert float(u[0, 5]) == 2


@pytest.mark.parametrize("stage", ["obtain", "submit_launch"])
def test_stores_whose_common_kernel_is_refused_go_one_by_one(
    queue: Any, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs, (u, v) = grids(queue)
    called, refused = getattr(stores, stage), []

    def refusing(kernel: Any, *arguments: Any, **options: Any) -> Any:
        launch = kernel if stage == "obtain" else None
        many = launch is not None or len(options["memory"]) > 4
        if many:
            refused.append(kernel)
            raise dp.KernelCompileError("too large") if launch else dp.KernelExecutionError("no")
        return called(kernel, *arguments, **options)

    with limits.force("fused"):
        grids(queue)
        stores._sequences.clear()
        monkeypatch.setattr(schedule, "entries", {})
        monkeypatch.setattr(stores, stage, refusing)
        for _ in range(2):
            statements(u, v)
            dp.synchronize(queue)
            statements(*theirs)
    assert len(refused) == 1
    np.testing.assert_array_equal(u.asnumpy(), theirs[0])
    np.testing.assert_array_equal(v.asnumpy(), theirs[1])


def test_a_store_that_is_refused_leaves_the_others(
    queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs, (u, v) = grids(queue)
    called, launches = stores.submit_launch, 0

    def refusing(*arguments: Any, **options: Any) -> Any:
        nonlocal launches
        launches += 1
        if launches == 2:
            raise dp.KernelExecutionError("no")
        return called(*arguments, **options)

    monkeypatch.setattr(stores, "submit_launch", refusing)
    monkeypatch.setattr(stores, "_sequence_of", lambda *_: None)
    with limits.force("fused"):
        statements(u, v)
        with pytest.raises(dp.KernelExecutionError):
            dp.synchronize(queue)
        found = u.asnumpy()
    column = theirs[0][:, -1].copy()
    statements(*theirs)
    theirs[0][1:, -1] = column[1:]  # what was refused
    theirs[1][0] = theirs[0][1] + 1
    theirs[1][-1, 3:9] = theirs[1][0, 2:8] * 0.5
    np.testing.assert_array_equal(found[1:], theirs[0][1:])
    np.testing.assert_array_equal(v.asnumpy(), theirs[1])


def border(draw: random.Random, names: str) -> str:
    """A statement on rows and columns of grids."""
    along = draw.choice(["row", "column", "few"])
    place = draw.randrange(4), draw.randrange(-3, 0), draw.randrange(4)

    def part(names: str) -> str:
        at = draw.choice(place)
        index = {"row": f"{at}, 1:-1", "column": f"2:, {at}", "few": f"{at % 7}:9, 4:8"}[along]
        if along == "few":
            index = f"{draw.randrange(9)}::60, 4:8"
            index = index.replace("::60", f":{int(index.split(':')[0]) + 3}")
        return f"{draw.choice(names)}[{index}]"

    value = draw.choice(
        ["{0}", "{0} + {1}", "{0} * 0.5 - {1}", f"{draw.randrange(9)}", "m.abs({0}) + 1"]
    )
    target, sign = part(names), draw.choice(["=", "=", "+=", "-="])
    others = names if sign == "=" else names.replace(target[0], "")
    return f"{target} {sign} {value.format(part(others), part(others))}"


@pytest.mark.usefixtures("dear_launches")
@pytest.mark.parametrize("seed", range(4))
def test_random_borders_in_one_kernel_are_those_of_numpy(
    queue: Any, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "is_worth_asking", lambda lost: True)
    together = stores_together(monkeypatch)
    draw = random.Random(seed)
    theirs, ours = grids(queue, 3)
    theirs[1], ours[1] = theirs[1].astype("float32"), ours[1].astype("float32")
    dp.synchronize(queue)
    # The first makes sure that work writes all three, so that the host computes no part of others.
    program = "\n".join(["b[0] = a[0]", "c[0] = a[0]", *(border(draw, "abc") for _ in range(5))])
    with dp.config.override(background_compile=True):
        with limits.force("fused"):
            exec(program, {"m": dp, **dict(zip("abc", ours, strict=True))})
        exec(program, {"m": np, **dict(zip("abc", theirs, strict=True))})
        for _ in range(3):
            x, y = ours[0], ours[2]
            with held(queue, x[20], y[20]):
                exec(program, {"m": dp, **dict(zip("abc", ours, strict=True))})
            theirs[0][20, 0] = theirs[2][20, 0] + 1
            exec(program, {"m": np, **dict(zip("abc", theirs, strict=True))})
            for a, b in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(a.asnumpy(), b, program)
            background.wait()
    assert together
