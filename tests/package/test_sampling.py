"""The sample of the default run covers parameter values; the parts of ``--all`` cover all cases."""

from __future__ import annotations

from typing import Any

import pytest

from tests import sampling

pytest_plugins = ["pytester"]

GRID = """
import pytest

@pytest.mark.parametrize("dtype", range(12))
@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("queue", ["cpu", "sub-device-1", "sub-device-2"])
def test_grid(queue, axis, dtype):
    print(f"<{queue} {axis} {dtype}>")

@pytest.mark.slow
def test_slow():
    pass

def test_single():
    pass
"""


@pytest.fixture
def run(pytester: Any) -> Any:
    pytester.makeconftest("from tests.sampling import *")
    pytester.makepyfile(test_grid=GRID)
    pytester.makeini("[pytest]\nmarkers =\n    slow: slow\n    static: static\n    sample: sample")
    pytester.syspathinsert(str(sampling.__file__).rpartition("/tests/")[0])
    return lambda *options: pytester.runpytest_inprocess("-s", "-p", "no:cacheprovider", *options)


def cases(result: Any) -> set[tuple[str, ...]]:
    lines = result.stdout.str().replace("<", "\n<").splitlines()
    return {tuple(line[1 : line.index(">")].split()) for line in lines if line.startswith("<")}


def test_the_default_has_each_value_of_each_parameter(run: Any) -> None:
    result = run()
    result.assert_outcomes(passed=12 + 1)
    queues, axes, dtypes = (set(values) for values in zip(*cases(result), strict=True))
    assert queues == {"cpu", "sub-device-1"}
    assert axes == {"0", "1", "2"}
    assert dtypes == set(map(str, range(12)))
    assert cases(run()) == cases(result)


def test_a_function_of_many_values_runs_a_limited_number_of_cases(run: Any, pytester: Any) -> None:
    pytester.makepyfile(test_grid=GRID.replace("range(12)", "range(40)"))
    run().assert_outcomes(passed=sampling.MAX_CASES + 1)


def test_a_function_may_have_a_lower_limit(run: Any, pytester: Any) -> None:
    text = GRID.replace("def test_grid", "@pytest.mark.sample(4)\ndef test_grid")
    pytester.makepyfile(test_grid=text)
    run().assert_outcomes(passed=4 + 1)
    run("--all").assert_outcomes(passed=12 * 3 * 3 + 2)


def test_all_runs_everything_and_its_parts_are_disjoint(run: Any) -> None:
    run("--all").assert_outcomes(passed=12 * 3 * 3 + 2)
    parts = [cases(run("--all", "--part", f"{part}/3")) for part in (1, 2, 3)]
    assert sum(map(len, parts)) == 12 * 3 * 3
    assert len(set.union(*parts)) == 12 * 3 * 3


def test_a_named_file_has_its_slow_tests_and_a_named_test_all_cases(run: Any) -> None:
    run("test_grid.py").assert_outcomes(passed=12 + 2)
    run("test_grid.py::test_grid").assert_outcomes(passed=12 * 3 * 3)


@pytest.mark.parametrize("part", ["0/3", "4/3", "x", "1-3"])
def test_an_invalid_part_is_an_error(run: Any, part: str) -> None:
    assert "--part must be K/N" in run("--all", "--part", part).stderr.str()
