"""The checks of ``dparray doctor``, in the order of their dependencies.

A check takes the requested device (a filter string or ``None``) and returns a description, or
raises :class:`Broken` with a description and a fix. Tests can pass in the inspected objects, so
that each failure can be simulated.
"""

from __future__ import annotations

import ctypes.util
import importlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dparray._compiler import cache
from dparray._compiler.targets import back_end_named
from dparray._driver import Missing, driver_named, driver_of, module_of

# It imports no package of SYCL.
_prepare = module_of("sycl", "prepare")

PYTHONS = ((3, 10), (3, 11), (3, 12), (3, 13), (3, 14))
#: The versions that work together: at least the first, below the second.
PACKAGES: dict[str, tuple[str, str]] = {
    "dpctl": ("0.22", "0.23"),
    "dpnp": ("0.20", "0.21"),
    "llvmlite": ("0.49", "0.51"),
    "numpy": ("2.0", "2.6"),
}
#: The packages of the extra `sycl`. Without them the CPU device is `host:cpu`.
_OF_SYCL = ("dpctl", "dpnp")
#: Release 2025.1 of intel-opencl-rt; the release before it, 2025.0, reports 2024.18.
OLDEST_DRIVER = (2025, 19)
_NEWER_DRIVER = 'pip install --upgrade "intel-opencl-rt>=2025.1"'
_NEWER_NVIDIA_DRIVER = "install the newest NVIDIA driver for the GPU; dparray needs 580 or newer"
_PACKAGES_OF_CUDA = ("cuda-core", "cuda-bindings", "nvidia-nvvm", "cupy-cuda13x")
_NEWER_GPU_DRIVER = (
    "update the system's packages of Intel's compute runtime: intel-opencl-icd and "
    "libze-intel-gpu1 on Debian and Ubuntu, intel-compute-runtime on Fedora and Arch"
)
#: The oldest GPU driver that built dparray's modules in tests (`make gpu-driver`): 22.43.
OLDEST_GPU_DRIVER = (22, 43)
_REINSTALL = "install dparray again, into an empty environment"
#: The processor without SYCL, which every installation has.
HOST = "host:cpu"
_WITHOUT_SYCL = f"to compute on the CPU without SYCL: DPARRAY_DEVICE={HOST}"
_REINSTALL_SYCL = (
    f"{_prepare.INSTALL.replace('install', 'install --force-reinstall')}\n{_WITHOUT_SYCL}"
)
_SYSTEM_DRIVERS = Path("/etc/OpenCL/vendors")


class Broken(Exception):
    """A failed check.

    Attributes:
        found: a description of the problem.
        remedy: the fix, one line for each possibility.
    """

    def __init__(self, found: str, remedy: str) -> None:
        super().__init__(found)
        self.found = found
        self.remedy = remedy


@dataclass(frozen=True)
class Link:
    """One check.

    Attributes:
        name: the displayed name.
        check: the function that performs the check.
        needs: checks without which this one cannot pass.
        isolated: whether it touches a driver, and must run in a process of its own.
        is_of_device: whether each device has to be checked.
    """

    name: str
    check: Callable[[str | None], str]
    needs: tuple[str, ...] = ()
    isolated: bool = False
    is_of_device: bool = False


# --- before any device ----------------------------------------------------------------------------


def check_python(
    version: tuple[Any, ...] = sys.version_info, machine: str = platform.machine()
) -> str:
    """Check that every package of the stack supports this Python interpreter."""
    text = ".".join(map(str, version[:3]))
    if tuple(version[:2]) not in PYTHONS:
        raise Broken(f"Python {text}", "use Python 3.10 to 3.14: uv venv --python 3.13")
    is_tried = sys.platform == "linux" and machine in ("x86_64", "aarch64")
    untried = "" if is_tried else f"; dparray has not yet been run on {sys.platform} {machine}"
    return f"{text} ({sys.executable}){untried}"


def installed_version(name: str) -> str | None:
    """Return the version of an installed package, or ``None``."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def has_sycl(version_of: Callable[[str], str | None] = installed_version) -> bool:
    """Return whether a package of the extra `sycl` is installed."""
    return any(version_of(name) for name in _OF_SYCL)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def check_packages(version_of: Callable[[str], str | None] = installed_version) -> str:
    """Check that every package is installed, in a version that works with the others.

    The packages of SYCL may be absent together.
    """
    parts, problems, wanted = [], [], []
    without_sycl = not has_sycl(version_of)
    for name, (oldest, too_new) in PACKAGES.items():
        if without_sycl and name in _OF_SYCL:
            continue
        version = version_of(name)
        if version is None:
            problems.append(f"{name} is not installed")
        elif name == "llvmlite" and _numbers(version) >= _numbers(too_new):
            parts.append(f"{name} {version}, newer than those that were tried (below {too_new})")
            continue
        elif not _numbers(oldest) <= _numbers(version) < _numbers(too_new):
            problems.append(f"{name} {version} is not in [{oldest}, {too_new})")
        else:
            parts.append(f"{name} {version}")
            continue
        wanted.append(f'"{name}>={oldest},<{too_new}"')
    if problems:
        raise Broken("; ".join(problems), f"pip install {' '.join(wanted)}")
    return ", ".join(parts) + (f"; no SYCL: {_prepare.advice()}" if without_sycl else "")


def check_driver(
    environment: Mapping[str, str] = os.environ,
    own: Callable[[], Path | None] = _prepare.find_driver,
    system: Path = _SYSTEM_DRIVERS,
    is_needed: bool = True,
) -> str:
    """Check that the OpenCL loader knows an existing driver, or that there is another loader."""
    if not is_needed:
        return "none is needed without SYCL"
    variable = "OCL_ICD_FILENAMES"
    ours = own()
    value = environment.get(variable)
    drivers = []
    for name in filter(None, (value or "").split(":")):
        if not Path(name).is_file():
            raise Broken(
                f"{variable}={value}: {name} is not a file",
                f"unset {variable}"
                + (f"; dparray then uses {ours}" if ours else f"; then {_NEWER_DRIVER}"),
            )
        origin = f"from {variable}"
        if Path(name) == ours:
            origin = "of this environment; `import dparray` before dpctl, dpnp, numba_dpex is used"
        drivers.append(f"{name} ({origin})")
    drivers += [
        f"{entry.read_text().strip()} (from {entry})" for entry in sorted(system.glob("*.icd"))
    ]
    if not drivers and ctypes.util.find_library("ze_loader"):
        drivers.append("Level Zero (ze_loader)")
    if not drivers:
        raise Broken(
            f"no driver in this environment, none in {system}, and {variable} names none",
            f"for the CPU: {_NEWER_DRIVER}\n"
            "for a GPU: install its vendor's compute driver (OpenCL or Level Zero)",
        )
    return "\n".join(drivers)


def check_cache(base_directory: Callable[[], Path | None] = cache.base_directory) -> str:
    """Check that the directory of the kernel cache can be written."""
    try:
        directory = base_directory()
        if directory is None:
            raise OSError(cache.missing_reason())
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(b"dparray")
    except OSError as error:
        raise Broken(
            f"the kernel cache cannot be written: {error}",
            "set DPARRAY_CACHE_DIR to a writable directory; until then every process "
            "compiles its kernels again",
        ) from None
    return str(directory)


_EMPTY_KERNEL = """
target triple = "spirv64-unknown-unknown"
define spir_kernel void @empty() { ret void }
"""


def _emit(text: str) -> bytes:
    module: bytes = back_end_named("spirv64").emit(text)
    return module


def check_writer(emit: Callable[[str], bytes] = _emit) -> str:
    """Check that the helper process, in which LLVM writes kernels, starts and works."""
    try:
        spirv = emit(_EMPTY_KERNEL)
        if not spirv.startswith(b"\x03\x02\x23\x07"):
            raise OSError("it wrote something that is not SPIR-V")
    except Exception as error:
        raise Broken(
            f"LLVM does not write SPIR-V: {error}",
            'pip install --force-reinstall "numba==0.68.*" "llvmlite==0.50.*"',
        ) from None
    return f"llvmlite {installed_version('llvmlite')}"


def check_fast_path(load: Callable[[str], Any] = importlib.import_module) -> str:
    """Check that the C module for small arrays is there, unless it cannot or must not be used."""
    fastpath = load("dparray._array.fastpath")
    if fastpath.module is not None:
        return "compiled"
    if fastpath.missing_reason:
        raise Broken(
            f"small arrays have no compiled fast path: {fastpath.missing_reason}; their operations "
            "take 10 us instead of 0.3 us",
            fastpath.BUILD,
        )
    return "not used, with DPARRAY_COMPILED=0 or on a free-threaded Python"


# --- in a separate process ----------------------------------------------------------------------


def _imported() -> tuple[str, ...]:
    return (*(("dpctl", "dpnp.tensor") if has_sycl() else ()), "dparray")


def check_imports(
    names: tuple[str, ...],
    load: Callable[[str], Any] = importlib.import_module,
) -> str:
    """Check that the packages below the arrays can be imported."""
    for name in names:
        try:
            load(name)
        except Exception as error:
            fix = _REINSTALL if name == "dparray" else _REINSTALL_SYCL
            raise Broken(f"import {name}: {type(error).__name__}: {error}", fix) from None
    startup = importlib.import_module("dparray._runtime.startup")
    if startup.failure is not None:
        raise Broken(str(startup.failure.__cause__ or startup.failure), _REINSTALL)
    return ", ".join(names)


def _load_compiler() -> Any:
    return importlib.import_module("llvmlite.binding")


def check_compiler(load: Callable[[], Any] = _load_compiler) -> str:
    """Check that LLVM, which compiles kernels, can be imported."""
    try:
        load()
    except Exception as error:
        raise Broken(f"import llvmlite: {type(error).__name__}: {error}", _REINSTALL) from None
    return f"llvmlite {installed_version('llvmlite')}"


def _place(device: Any) -> str:
    return f"{device.filter_string} ({device.name}, driver {device.driver_version})"


def check_devices(name: str | None = None, found: Sequence[Any] | None = None) -> str:
    """Check that a device can hold arrays; if one was requested, that it can."""
    if found is None and not has_sycl():
        of_other_drivers = importlib.import_module("dparray").devices()
        _device(name)
        return "\n".join(map(_place, of_other_drivers))
    module = module_of("sycl", "devices")
    devices = module_of("sycl", "report").shown() if found is None else found
    reasons = [(device, module.missing_usm(device)) for device in devices]
    lines = [
        _place(device) + (f": cannot hold arrays, {reason}" if reason else "")
        for device, reason in reasons
    ]
    if not any(reason is None for _, reason in reasons):
        remedy = (
            f"for the CPU: {_NEWER_DRIVER}\n"
            "for a GPU: install its vendor's compute driver (OpenCL or Level Zero)"
        )
        given = os.environ.get("OCL_ICD_FILENAMES")
        if given and given != str(_prepare.find_driver()):  # set by dparray itself
            remedy = "unset OCL_ICD_FILENAMES, so that dparray finds the driver itself\n" + remedy
        selector = os.environ.get("ONEAPI_DEVICE_SELECTOR")
        if selector:
            remedy = (
                f"unset ONEAPI_DEVICE_SELECTOR={selector}, which hides devices from SYCL, or "
                "choose by type alone: ONEAPI_DEVICE_SELECTOR='*:cpu'\n" + remedy
            )
        raise Broken(
            "\n".join(lines) or "the drivers show no SYCL device", f"{remedy}\n{_WITHOUT_SYCL}"
        )
    first = module_of("sycl", "report").default() if found is None else found[0]
    if module.missing_usm(first):
        raise Broken(
            "\n".join(lines) + f"\n{first.filter_string} is SYCL's own default, on which dpctl and "
            "dpnp crash, because it has no USM",
            "list the other driver first in OCL_ICD_FILENAMES, or unset that variable\n"
            "or remove the driver of the device that cannot hold arrays",
        )
    if name is not None:
        _device(name)
    return "\n".join(lines)


def check_driver_age(found: Sequence[Any] | None = None) -> str:
    """Check that no driver is known for wrong results, or older than every tested one."""
    if found is None:
        found = module_of("sycl", "report").shown() if has_sycl() else ()
    lines = []
    for device in found:
        # GPU drivers begin with a year of two digits, on Level Zero with a number of another kind.
        of_gpu = re.match(r"(\d\d)\.(\d+)\.", device.driver_version)
        if of_gpu and device.is_gpu and "Intel" in device.vendor:
            if (int(of_gpu[1]), int(of_gpu[2])) < OLDEST_GPU_DRIVER:
                raise Broken(
                    f"{_place(device)} is older than {'.'.join(map(str, OLDEST_GPU_DRIVER))}, the "
                    "oldest that dparray's kernels were built with",
                    _NEWER_GPU_DRIVER,
                )
            lines.append(_place(device))
            continue
        match = re.match(r"(20\d\d)\.(\d+)", device.driver_version)
        if not match or "Intel" not in device.vendor:
            continue
        if (int(match[1]), int(match[2])) < OLDEST_DRIVER:
            raise Broken(
                f"{_place(device)} is older than release 2025.1: on newer CPUs it gives wrong "
                "results for exp, log, sin, cos, tan and for local memory",
                f"{_NEWER_DRIVER}\n"
                "if OCL_ICD_FILENAMES or a file in /etc/OpenCL/vendors names the old driver, "
                "remove that",
            )
        lines.append(_place(device))
    return "\n".join(lines) if lines else "no driver with a known minimum version"


def _find_cuda() -> Any:
    return driver_named("cuda")


def _libdevice_path() -> str:
    path: str = back_end_named("ptx").libdevice_path()
    return path


def check_cuda(
    find: Callable[[], Any] = _find_cuda,
    version_of: Callable[[str], str | None] = installed_version,
    libdevice: Callable[[], str] = _libdevice_path,
) -> str:
    """Check that NVIDIA GPUs have all that they need; without a GPU, check nothing."""
    driver = find()
    if isinstance(driver, Missing):
        if driver.is_damaged:
            raise Broken(driver.reason, driver.fix)
        return f"not used: {driver.reason}; {driver.fix}"
    platforms = driver.platforms()
    if not platforms:
        return f"not used: {driver.why_none()}"
    versions = {name: version_of(name) for name in _PACKAGES_OF_CUDA}
    lines = [
        f"the NVIDIA driver is for CUDA {platforms[0]['version']}",
        ", ".join(f"{name} {version or 'not installed'}" for name, version in versions.items()),
        f"libdevice: {libdevice() or 'not found'}",
    ]
    format_bytes = importlib.import_module("dparray.memory").format_bytes
    for device in platforms[0]["devices"]:
        lines.append(
            f"{device['filter_string']} ({device['name']}, {device['compute_units']} "
            f"multiprocessors, {format_bytes(device['global_memory'])}): kernels "
            + (device["kernels"] if device["usable"] else f"do not run, {device['reason']}")
        )
    lines.append("dparray was tested on an H100 and an H200; other GPUs were not tried")
    missing = []
    if not libdevice():
        missing.append("libdevice, the mathematical functions of kernels")
    if versions["cupy-cuda13x"] is None and importlib.util.find_spec("cupy") is None:
        missing.append("CuPy, which computes products, transforms and linear algebra")
    if missing:
        lines.append(f"missing: {'; '.join(missing)}")
        raise Broken("\n".join(lines), module_of("cuda", "prepare").INSTALL)
    return "\n".join(lines)


def _device(name: str | None) -> Any:
    """Return the device asked for, or the default device."""
    module = importlib.import_module("dparray.device")
    errors = importlib.import_module("dparray.exceptions")
    try:
        return module.Device(name) if name is not None else module.default_device()
    except errors.DeviceError as error:
        raise Broken(str(error), "`dparray info` lists the devices of this machine") from None


def newer_driver(device: Any) -> str:
    """Return advice for updating the driver of a device."""
    if device.driver == "cuda":
        return _NEWER_NVIDIA_DRIVER
    if device.driver == "host":
        return "pip install --upgrade llvmlite"
    return _NEWER_GPU_DRIVER if device.device_type == "gpu" else _NEWER_DRIVER


def _agree(device: Any, what: str, actual: Any, expected: Any) -> None:
    if not np.array_equal(actual, expected):
        wrong = np.flatnonzero(np.asarray(actual) != np.asarray(expected))
        raise Broken(
            f"{device}: {what}: {wrong.size} of {np.size(expected)} values are wrong, the first at "
            f"{wrong[0]}: {np.ravel(actual)[wrong[0]]} instead of {np.ravel(expected)[wrong[0]]}",
            f"the driver of the device computes wrong results: {newer_driver(device)}",
        )


def check_kernel(name: str | None) -> str:
    """Check that a kernel compiles, runs, and is ordered with array functions on its queue."""
    dp = importlib.import_module("dparray")
    kernels = importlib.import_module("dparray.cli.doctor.kernels")
    device = _device(name)
    n = 1031
    x = dp.arange(n, dtype="int32", device=device)
    y = x * 3
    out = dp.zeros(n, dtype="int32", device=device)
    dp.call_kernel(kernels.add, dp.Range(n), x, y, out)
    _agree(device, "a kernel that adds integers", dp.asnumpy(out + 1), np.arange(n) * 4 + 1)
    is_kept = driver_of(device.queue).keeps_binaries(device.queue)
    kept = "kept on disk" if is_kept else "left to the driver"
    return f"compiled, and ran on {device}; device binaries are {kept}"


def check_local_memory(name: str | None) -> str:
    """Check that work-items see after a barrier what others wrote to local memory."""
    dp = importlib.import_module("dparray")
    kernels = importlib.import_module("dparray.cli.doctor.kernels")
    device = _device(name)
    group, groups = kernels.GROUP, 64
    x = dp.arange(group * groups, dtype="int32", device=device)
    # Reused memory could hold the correct values of an earlier run.
    reversed_, sums = dp.zeros_like(x), dp.zeros(groups, dtype="int32", device=device)
    local = dp.LocalAccessor(group, dtype=np.int32)
    dp.call_kernel(
        kernels.reverse_and_sum, dp.NdRange(group * groups, group), x, reversed_, sums, local
    )
    values = np.arange(group * groups, dtype=np.int32).reshape(groups, group)
    _agree(device, "reversal in local memory", dp.asnumpy(reversed_), values[:, ::-1].ravel())
    _agree(device, "sum in local memory", dp.asnumpy(sums), values.sum(axis=1))
    total = dp.zeros(1, dtype="int32", device=device)
    dp.call_kernel(kernels.count, dp.Range(groups * group), total)
    _agree(device, "atomic count", dp.asnumpy(total), np.array([groups * group]))
    return f"{groups} work-groups of {group}, barriers and atomics"


#: For each function: NumPy's equivalent and the tested interval.
MATH: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "exp": (np.exp, -80.0, 80.0),
    "log": (np.log, 1e-30, 1e30),
    "sqrt": (np.sqrt, 0.0, 1e30),
    "sin": (np.sin, -100.0, 100.0),
    "cos": (np.cos, -100.0, 100.0),
    "tan": (np.tan, -100.0, 100.0),
    "asin": (np.arcsin, -1.0, 1.0),
    "acos": (np.arccos, -1.0, 1.0),
    "atan": (np.arctan, -100.0, 100.0),
    "sinh": (np.sinh, -80.0, 80.0),
    "cosh": (np.cosh, -80.0, 80.0),
    "tanh": (np.tanh, -10.0, 10.0),
    "expm1": (np.expm1, -10.0, 10.0),
    "log1p": (np.log1p, -0.99, 1e10),
}
#: The allowed difference in units in the last place. OpenCL allows at most 5 for these functions;
#: wrong results differ by millions.
TOLERANCE = 8.0


def math_inputs(function: str, dtype: Any, count: int = 4096) -> np.ndarray:
    """Return numbers from the function's interval, the same ones every time.

    Divisible into work-groups: drivers vectorize only full groups, and the vectorized code of old
    drivers was wrong.
    """
    _, low, high = MATH[function]
    random = np.random.default_rng(20)
    if low > 0:  # over all orders of magnitude
        return np.exp(random.uniform(np.log(low), np.log(high), count)).astype(dtype)
    return random.uniform(low, high, count).astype(dtype)


def ulps(actual: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference in ULP; infinite if a value is not finite."""
    exact = expected.astype(actual.dtype)
    with np.errstate(all="ignore"):
        distance = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
        units = distance / np.spacing(np.abs(exact)).astype(np.float64)
    return float(np.max(np.where(np.isfinite(units), units, np.inf), initial=0.0))


def compute_in_kernel(dtype: str, inputs: Mapping[str, np.ndarray], name: str | None) -> Any:
    """Compute every function of its inputs with one kernel; return a mapping."""
    dp = importlib.import_module("dparray")
    kernels = importlib.import_module("dparray.cli.doctor.kernels")
    x = dp.asarray(np.stack([inputs[function] for function in MATH]), device=_device(name))
    out = dp.zeros(x.shape, dtype=dtype, device=x.device)
    dp.call_kernel(kernels.math_functions, dp.Range(x.shape[1]), x, out)
    return dict(zip(MATH, dp.asnumpy(out), strict=True))


def compute_in_functions(dtype: str, inputs: Mapping[str, np.ndarray], name: str | None) -> Any:
    """Compute every function of its inputs with array functions; return a mapping."""
    dp = importlib.import_module("dparray")
    device = _device(name)
    return {
        function: dp.asnumpy(getattr(dp, function)(dp.asarray(values, device=device)))
        for function, values in inputs.items()
    }


def check_math(
    name: str | None,
    what: str = "kernels",
    compute: Callable[[str, Mapping[str, np.ndarray], str | None], Any] = compute_in_kernel,
) -> str:
    """Check that the elementary functions agree with NumPy in every dtype of the device."""
    device = _device(name)
    dtypes = ["float32"] + ["float64"] * device.has_fp64
    worst = dict.fromkeys(dtypes, ("each", -1.0))
    wrong: dict[str, list[str]] = {}
    for dtype in dtypes:
        inputs = {function: math_inputs(function, dtype) for function in MATH}
        results = compute(dtype, inputs, name)
        for function, values in inputs.items():
            # float32 is compared with double precision, and double precision with itself.
            distance = ulps(results[function], MATH[function][0](values.astype(np.float64)))
            if distance > TOLERANCE:
                wrong.setdefault(dtype, []).append(function)
            worst[dtype] = max(worst[dtype], (function, distance), key=lambda pair: pair[1])
    if wrong:
        raise Broken(
            f"{device}: in {what}, wrong results: "
            + "; ".join(f"{', '.join(functions)} of {dtype}" for dtype, functions in wrong.items()),
            f"the driver of the device computes wrong results: {newer_driver(device)}",
        )
    largest = ", ".join(
        f"{distance:.1f} ({dtype}, {function})" for dtype, (function, distance) in worst.items()
    )
    return f"{len(MATH)} functions in {what}; off by units in the last place: {largest}"


def check_arrays(name: str | None) -> str:
    """Check that array functions return NumPy's results."""
    dp = importlib.import_module("dparray")
    device = _device(name)
    values = np.random.default_rng(5).integers(-1000, 1000, (40, 50)).astype(np.int32)
    x = dp.asarray(values, device=device)
    _agree(device, "a sum along an axis", dp.asnumpy(dp.sum(x, axis=0)), values.sum(axis=0))
    _agree(
        device, "slicing and arithmetic", dp.asnumpy(x[::2, 1:] * 2 - 1), values[::2, 1:] * 2 - 1
    )
    _agree(device, "comparison and selection", dp.asnumpy(x[x > 0]), values[values > 0])
    return f"sum, slicing, arithmetic and selection on {device}"


def check_sub_devices(name: str | None) -> str:
    """Check that the device can be split, and that its parts compute."""
    dp = importlib.import_module("dparray")
    device = _device(name)
    units = device.traits.units
    if units < 2:
        return f"{device} has one compute unit; so it cannot be split"
    if "partition" not in device.traits.aspects:
        return f"{device} cannot be split; only sub-devices are unavailable"
    parts = device.create_sub_devices(partition=1)
    for part in parts[:2]:
        x = dp.arange(1000, dtype="int32", device=part)
        _agree(part, "arithmetic", dp.asnumpy(x * 2), np.arange(1000) * 2)
    a, b = (dp.ones(3, device=part) for part in parts[:2])
    _agree(
        device, "a copy between sub-devices", dp.asnumpy(a + b.to_device(a.device)), np.full(3, 2.0)
    )
    return f"{len(parts)} of one compute unit each"


def check_memory(name: str | None) -> str:
    """Check that the pool allocates memory of each USM type of the device."""
    dp = importlib.import_module("dparray")
    device = _device(name)
    for usm_type in device.usm_types:
        try:
            x = dp.full(100_000, 7, dtype="int32", device=device, usm_type=usm_type)
            _agree(device, f"memory of USM type {usm_type}", dp.asnumpy(x), np.full(100_000, 7))
        except dp.MemoryError as error:
            raise Broken(
                f"USM type {usm_type}: {error}",
                "end other processes that hold memory of the device, or raise the limit "
                "(`ulimit -v`, the container's memory)",
            ) from None
    missing = [usm for usm in ("device", "shared", "host") if usm not in device.usm_types]
    text = "USM types " + ", ".join(device.usm_types)
    return text + (f"; the device has no {', '.join(missing)}" if missing else "")


_ON_DEVICE = ("imports", "devices")
LINKS: tuple[Link, ...] = (
    Link("python", lambda device: check_python()),
    Link("packages", lambda device: check_packages()),
    Link("driver", lambda device: check_driver(is_needed=has_sycl())),
    Link("cache", lambda device: check_cache()),
    Link("writer", lambda device: check_writer()),
    Link("imports", lambda device: check_imports(_imported()), isolated=True),
    Link("devices", check_devices, ("imports",), isolated=True),
    Link("fast-path", lambda device: check_fast_path(), ("imports",), isolated=True),
    Link("compiler", lambda device: check_compiler(), _ON_DEVICE, isolated=True),
    Link("driver-age", lambda device: check_driver_age(), _ON_DEVICE, isolated=True),
    Link("nvidia", lambda device: check_cuda(), isolated=True),
    Link("memory", check_memory, _ON_DEVICE, isolated=True, is_of_device=True),
    Link("arrays", check_arrays, _ON_DEVICE, isolated=True, is_of_device=True),
    Link("kernel", check_kernel, (*_ON_DEVICE, "compiler"), isolated=True, is_of_device=True),
    Link(
        "local-memory",
        check_local_memory,
        (*_ON_DEVICE, "kernel"),
        isolated=True,
        is_of_device=True,
    ),
    Link("math-kernel", check_math, (*_ON_DEVICE, "kernel"), isolated=True, is_of_device=True),
    Link(
        "math-arrays",
        lambda device: check_math(device, "array functions", compute_in_functions),
        _ON_DEVICE,
        isolated=True,
        is_of_device=True,
    ),
    Link("sub-devices", check_sub_devices, _ON_DEVICE, isolated=True, is_of_device=True),
)
