"""An operation takes few steps through the package: its function calls are counted."""

from __future__ import annotations

import numpy as np
import pytest

import dparray as dp
from tests.evaluate.tracing import IS_COMPILED, in_a_new_process, traced


@pytest.fixture(scope="module", autouse=True)
def _process_of_its_own(request: pytest.FixtureRequest) -> None:
    in_a_new_process(request)


@pytest.fixture
def operands(fused: None) -> list[dp.ndarray]:
    """Return two arrays whose sum a kernel has computed before."""
    arrays = [dp.asarray(np.ones(200_000, np.float32)) for _ in range(2)]
    for _ in range(3):
        dp.add(*arrays).asnumpy()
    return arrays


def folders(files: list[str]) -> set[str]:
    """Return the stages of the pipeline to which the files belong."""
    return {file.partition("/")[0] for file in files}


def test_an_operation_is_recorded_in_few_calls(operands: list[dp.ndarray]) -> None:
    _, files = traced(lambda: dp.add(*operands))
    assert len(files) <= 19
    assert len(folders(files)) <= 6


def test_a_cached_expression_is_read_in_few_calls(operands: list[dp.ndarray]) -> None:
    pending = dp.add(*operands)
    values, files = traced(pending.asnumpy)
    assert values[0] == 2
    assert len(files) <= (25 if IS_COMPILED else 45), files
    assert len(folders(files)) <= 8, folders(files)
    assert len(set(files)) <= (11 if IS_COMPILED else 16), sorted(set(files))
    assert "_evaluate/schedule.py" not in files


def test_a_cached_eager_call_schedules_nothing(
    operands: list[dp.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dp.config, "lazy", False)
    dp.synchronize(dp.add(*operands))  # no launch is waited for
    _, files = traced(lambda: dp.add(*operands))
    assert len(files) <= (28 if IS_COMPILED else 45), files
    assert not {"_evaluate/schedule.py", "_codegen/elementwise.py"} & set(files)
