"""Examples run on machines with one compute unit, and with many."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
#: Run the examples that depend on the compute units; a number pretends that there are as many.
EXAMPLES = """
import doctest, inspect, sys
import dparray as dp
from tests.package.test_docstrings import NAMESPACES, public

units = int(sys.argv[1])
whole = dp.Device.create_sub_devices
if units:
    def of_many(self, partition=1):
        parts = whole(self, partition)
        return [parts[i % len(parts)] for i in range(units)] if partition == 1 else parts
    dp.Device.create_sub_devices = of_many
texts = {name: inspect.getdoc(value) or "" for place in NAMESPACES for name, value in public(place)}
for cls in (dp.Device, dp.ndarray):
    texts |= {f"{cls.__name__}.{n}": inspect.getdoc(v) or "" for n, v in vars(cls).items()}
texts.pop("Device.create_sub_devices" if units else "", None)  # which compares with the device
wrong, count = [], 0
for name, text in texts.items():
    if ">>>" in text and ("create_sub_devices" in text or "parts = " in text):
        test = doctest.DocTestParser().get_doctest(text, {"dp": dp}, name, None, 0)
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        runner.run(test, out=wrong.append)
        count += 1
print("".join(wrong) or f"{count} examples are right")
"""


def run(program: str, *arguments: str, cores: str = "") -> str:
    before = ["taskset", "-c", cores] if cores else []
    done = subprocess.run(
        [*before, sys.executable, "-c", program, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def first_core() -> str:
    if shutil.which("taskset") is None:
        pytest.skip("needs taskset")
    return str(min(os.sched_getaffinity(0)))


def test_examples_run_on_one_unit(first_core: str) -> None:
    assert "examples are right" in run(EXAMPLES, "0", cores=first_core)


@pytest.mark.slow
def test_examples_run_on_sixty_four_units() -> None:
    assert "examples are right" in run(EXAMPLES, "64")


@pytest.mark.slow
def test_a_device_of_one_unit_is_its_only_part(first_core: str) -> None:
    program = (
        "import dparray as dp; d = dp.Device('cpu'); print(d.create_sub_devices() == [d]);"
        "x = dp.ones(3, device=d.create_sub_devices()[0]); print((x + dp.ones(3)).tolist())"
    )
    assert run(program, cores=first_core) == "True\n[2.0, 2.0, 2.0]\n"
