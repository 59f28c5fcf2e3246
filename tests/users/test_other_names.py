"""Names from other libraries raise errors that suggest dparray's names."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
from typing import Any

import pytest

import dparray as dp
from dparray import cli
from tests.support import find_driver

pytestmark = pytest.mark.process


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("get", r"x\.asnumpy\(\)"),
        ("cpu", r"x\.asnumpy\(\)"),
        ("numpy", r"x\.asnumpy\(\)"),
        ("to", r"x\.to_device"),
        ("block_until_ready", r"dp\.synchronize\(\)"),
        ("unsqueeze", r"x\[:, None\]"),
        ("float", r"x\.astype\('float32'\)"),
        ("zero_", r"x\[\.\.\.\] = value"),
        ("toDlpack", r"x\.__dlpack__"),
    ],
)
def test_methods_of_other_libraries_suggest_dparrays(name: str, ours: str) -> None:
    with pytest.raises(AttributeError, match=ours):
        getattr(dp.ones(1), name)


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("ElementwiseKernel", r"@dp\.elementwise"),
        ("ReductionKernel", r"@dp\.reduction"),
        ("RawKernel", r"dp\.raw_kernel"),
        ("get_devices", r"dp\.devices\(\)"),
        ("dpjit", r"@dp\.jit"),
        ("from_numpy", r"dp\.asarray"),
        ("cuda", r"dp\.devices\(\).*new_queue.*dp\.timer.*@dp\.kernel"),
        ("fuse", "fused automatically"),
        ("get_default_memory_pool", r"dp\.memory\.stats\(\)"),
        ("memoize", r"functools\.cache"),
        ("scatter_add", r"dp\.add\.at"),
        ("scatter_max", r"dp\.maximum\.at"),
        ("numba_dpex", r"@dp\.kernel"),
        ("joint_reduce", r"dp\.reduce_over_group"),
        ("joint_inclusive_scan", r"dp\.inclusive_scan_over_group"),
        ("syncthreads", r"dp\.group_barrier"),
        ("get_global_id", r"item\.get_global_id\(0\)"),
        ("local", r"dp\.LocalAccessor"),
        ("fori_loop", r"@dp\.kernel"),
        ("cat", r"dp\.concatenate"),
        ("sigmoid", r"dp\.special\.expit"),
        ("usm_ndarray", r"dp\.ndarray"),
    ],
)
def test_functions_of_other_libraries_suggest_dparrays(name: str, ours: str) -> None:
    with pytest.raises(AttributeError, match=ours):
        getattr(dp, name)


def test_a_misspelt_name_comes_with_the_right_one() -> None:
    code = "import dparray as dp; dp.cumsun"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert "Did you mean: 'cumsum'?" in done.stderr


def test_dir_offers_nothing_that_raises() -> None:
    x = dp.ones((2, 2))
    names = dir(x)
    assert {"asnumpy", "shape", "sum", "T"} <= set(names)
    assert "get" not in names
    for name in names:
        getattr(x, name)


def test_an_array_on_a_sub_device_unpickles_there(queue: Any) -> None:
    x = pickle.loads(pickle.dumps(dp.arange(3, sycl_queue=queue)))
    assert x.tolist() == [0, 1, 2]
    if dp.Device(queue).is_canonical:
        assert x.sycl_queue == queue


def test_a_missing_device_is_reported_once() -> None:
    rebuild, arguments = dp.ones(2).__reduce__()
    elsewhere = (*arguments[:3], ((1, 10_000),))
    with pytest.warns(UserWarning, match="sub-device 10001 .* is not available; it is now on"):
        assert rebuild(*elsewhere).tolist() == [1, 1]
    assert rebuild(*elsewhere).tolist() == [1, 1]


def test_writing_through_broadcast_to_is_refused_as_in_numpy(queue: Any) -> None:
    for size in (3, 20_000):
        x = dp.zeros(size, sycl_queue=queue)
        b = dp.broadcast_to(x, (4, size))
        for write in (
            lambda b=b: b.__setitem__(0, 1),
            lambda b=b: b.__setitem__((0, 0), 1),
            lambda b=b: b.__iadd__(1),
            lambda b=b: dp.add(b, 1, out=b),
        ):
            with pytest.raises(ValueError, match=r"read-only.*x = x\.copy\(\)"):
                write()
        assert not x.any()
        y = copy.copy(b)
        y[0] = 1
        assert y.sum() == size


def test_a_missing_gpu_reports_its_requirements() -> None:
    with pytest.raises(dp.DeviceError, match=r"available: opencl:cpu:0.*intel-opencl-icd"):
        dp.ones(1, device="gpu:7")


def test_the_bare_command_shows_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    assert "doctor" in capsys.readouterr().out


def test_the_cache_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["cache", "--json"]) == 0
    assert {"directory", "entries", "nbytes", "limit"} <= json.loads(capsys.readouterr().out).keys()


def test_every_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    for each in cli.COMMANDS:
        if each.name == "report":  # it writes a JSON file
            continue
        with pytest.raises(SystemExit):
            cli.main([each.name, "--help"])
        assert "--json" in capsys.readouterr().out, each.name


def test_options_of_maintainers_are_hidden(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["bench", "--help"])
    shown = capsys.readouterr().out
    assert "--json" in shown
    assert "--readme" not in shown


def test_dpctl_may_be_imported_before_dparray() -> None:
    code = "import dpctl; import dparray as dp; print(dp.ones(2) + 1)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "[2. 2.]", done.stderr


def test_dpctl_used_before_dparray_is_named_where_there_is_no_device() -> None:
    if find_driver() is None:
        pytest.skip("the driver does not belong to this environment")
    code = (
        "import dpctl; seen = dpctl.get_devices(); import dparray as dp\n"
        "for make in (lambda: dp.ones(2), lambda: dp.ones(2, device='cpu')):\n"
        "    try: make()\n"
        "    except dp.DeviceError as error: print(error)\n"
        "    else: assert seen\n"
    )
    environment = {name: v for name, v in os.environ.items() if name != "OCL_ICD_FILENAMES"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=environment
    )
    assert done.returncode == 0, done.stderr
    if done.stdout:  # no driver is registered with the system
        assert done.stdout.count("write `import dparray` first, or set") == 2
        assert f"OCL_ICD_FILENAMES={find_driver()}" in done.stdout


@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
def test_dir_of_any_shape_offers_nothing_that_raises(shape: tuple[int, ...]) -> None:
    for x in (dp.ones(shape), dp.ones(shape, dtype="int32") + 1):
        for name in dir(x):
            getattr(x, name)
        assert ("mT" in dir(x)) == (len(shape) > 1)
