"""Host work that several threads share."""

from __future__ import annotations

import threading

import pytest

from dparray._runtime.threads import share_out


def test_all_pieces_are_computed_on_several_threads() -> None:
    both = threading.Barrier(2, timeout=60)
    done: list[int] = []

    def work(piece: int) -> None:
        if piece < 2:
            both.wait()  # ends only if two threads work together
        done.append(piece)

    share_out(work, list(range(20)), 2)
    assert sorted(done) == list(range(20))


def test_threads_are_kept_between_calls() -> None:
    names: set[str] = set()
    for _ in range(50):
        both = threading.Barrier(2, timeout=60)

        def work(piece: int, both: threading.Barrier = both) -> None:
            both.wait()
            names.add(threading.current_thread().name)

        share_out(work, [0, 1], 2)
    assert len(names) <= 1 + max(threading.active_count(), 2)
    assert len(names) < 50


def test_pieces_may_share_out_work_themselves() -> None:
    done: list[tuple[int, int]] = []

    def work(piece: int) -> None:
        share_out(lambda part: done.append((piece, part)), [0, 1, 2], 8)

    share_out(work, list(range(30)), 8)
    assert sorted(done) == [(piece, part) for piece in range(30) for part in range(3)]


def test_the_exception_of_the_first_failed_piece_is_raised() -> None:
    def work(piece: int) -> None:
        if piece in (3, 5):
            raise ValueError(f"piece {piece}")

    with pytest.raises(ValueError, match="piece 3"):
        share_out(work, list(range(6)), 1)
