"""Prepare drivers before dpctl is imported: the CPU driver, its folder, and ``dpctl.tensor``.

State: the environment variable that names the OpenCL driver, and the import finder behind
``dpctl.tensor``. Importing this module imports no SYCL package.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import importlib.util
import os
import site
import sys
import types
from pathlib import Path

from dparray._driver.working_folder import working_folder
from dparray._imports import StandIn

_DRIVER_VARIABLE = "OCL_ICD_FILENAMES"
_DRIVER_LIBRARY = "libintelocl.so"
_SYSTEM_DRIVERS = Path("/etc/OpenCL/vendors")


def find_driver() -> Path | None:
    """Return the OpenCL CPU driver that ships in this Python environment, or ``None``."""
    prefixes = [sys.prefix, sys.exec_prefix, site.getuserbase() if site.ENABLE_USER_SITE else ""]
    for prefix in prefixes:
        candidate = Path(prefix, "lib", _DRIVER_LIBRARY)
        if prefix and candidate.is_file():
            return candidate
    return None


def _system_has_cpu_driver() -> bool:
    for entry in _SYSTEM_DRIVERS.glob("*.icd"):
        with contextlib.suppress(OSError):
            if "libintelocl" in entry.read_text():
                return True
    return False


#: Whether dpctl was imported before the driver was prepared.
_came_late = False


def prepare() -> None:
    """Prepare the driver, and the modules that dpctl and dpnp lack."""
    _prepare_driver()
    _tensor_alias.install()


def _prepare_driver() -> None:
    """Let the OpenCL loader find the CPU driver of this environment.

    Must run before the first ``import dpctl``. A value that the user set is kept, and drivers
    registered under ``/etc/OpenCL/vendors`` stay visible next to this one. If one of them is the
    same driver, nothing is added, because the device would appear twice.
    """
    global _came_late
    if _DRIVER_VARIABLE in os.environ or _system_has_cpu_driver():
        return
    _came_late = "dpctl" in sys.modules
    driver = find_driver()
    if driver is not None:
        os.environ[_DRIVER_VARIABLE] = str(driver)


def late_import() -> str | None:
    """Return advice if dpctl was used before the driver was prepared, otherwise ``None``."""
    driver = find_driver()
    if not _came_late or driver is None:
        return None
    return (
        "dpctl (or dpnp, numba_dpex) was used before dparray was imported, and SYCL looks for "
        "drivers once; write `import dparray` first, or set for the whole program "
        f"{_DRIVER_VARIABLE}={driver}"
    )


PACKAGE = "dpctl"
#: The packages of the extra, whose name works only where an index has dparray.
INSTALL = 'pip install "dpctl==0.22.*" "dpnp==0.20.*" "intel-opencl-rt>=2025.1"'


def advice() -> str:
    """Return how to add SYCL to this installation, or why it cannot be added."""
    import platform

    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return "dparray uses SYCL on Linux x86-64 only"
    return f"{INSTALL}, for CPUs and Intel GPUs"


def absence() -> tuple[str, str] | None:
    """Return why SYCL cannot be used, and the fix; ``None`` if it can. Imports dpctl."""
    try:
        prepare_devices()
        importlib.import_module("dpctl")
    except ModuleNotFoundError as error:
        if error.name != "dpctl":
            raise
        return "dpctl is not installed", advice()
    return None


def prepare_devices() -> None:
    """Let the SYCL runtime find its devices now if the working folder was removed.

    The runtime asks for the working folder when it loads its adapters, once in a process. If the
    folder is gone, the runtime finds no device and the process does not end.
    """
    with working_folder() as was_removed:
        if was_removed:
            importlib.import_module("dpctl").get_devices()


# --- dpctl.tensor, which lives on as dpnp.tensor --------------------------------------------------


def _is_tensor(name: str) -> bool:
    return name == "dpctl.tensor" or name.startswith("dpctl.tensor.")


def _take_dpnps(module: types.ModuleType) -> None:
    # The import system uses the entry of sys.modules after this call.
    name = module.__name__
    sys.modules[name] = importlib.import_module("dpnp" + name.removeprefix("dpctl"))


#: Redirects imports of ``dpctl.tensor`` to ``dpnp.tensor`` when dpctl lacks it.
_tensor_alias = StandIn(_is_tensor, _take_dpnps)
