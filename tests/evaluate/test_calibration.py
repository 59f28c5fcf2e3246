"""What was measured while other programs had the processors decides nothing, and is not kept."""

from __future__ import annotations

from collections.abc import Iterator

import dpctl
import numpy as np
import pytest

import dparray as dp
from dparray._evaluate import calibration, cost_model, limits
from dparray._evaluate.cost_model import DEFAULT, Terms


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The keys of what calibration keeps on disk, with nothing kept or known before."""
    keys: list[str] = []
    monkeypatch.setattr(calibration, "_is_done", False)
    monkeypatch.setattr(calibration, "_read", lambda key: None)
    monkeypatch.setattr(calibration.cache, "save", lambda key, payload: keys.append(key))
    monkeypatch.setattr(cost_model, "_found", [DEFAULT])
    monkeypatch.setattr(limits, "follow_model", lambda: None)
    with dp.config.override(cost_model={}):
        yield keys


#: A kernel that shares its cores with other programs looks slower than it is.
SLOW = DEFAULT._replace(device_byte=4 * DEFAULT.device_byte)


def test_terms_of_an_idle_machine_are_kept(
    saved: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "measure", lambda queue: (SLOW, 0.99))
    assert calibration.settle(dpctl.SyclQueue("cpu")) == SLOW
    assert len(saved) == 1


def test_terms_of_a_busy_machine_are_neither_used_nor_kept(
    saved: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "measure", lambda queue: (SLOW, 0.4))
    assert calibration.settle(dpctl.SyclQueue("cpu")) == DEFAULT
    assert not saved


def test_all_cores_move_as_many_bytes_as_one() -> None:
    found, share = calibration.measure(dpctl.SyclQueue("cpu"))
    assert isinstance(found, Terms)
    assert 0 < found.device_byte <= found.host_byte
    assert np.all(np.isfinite(found))
    assert 0 < share < 1.2
