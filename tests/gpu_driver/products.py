"""The Intel GPUs that the driver simulates, and the environment variables for that.

The driver records commands instead of executing them (its AUB mode; the file is /dev/null). So
values are garbage. Everything else is real: devices, aspects, memory, builds, submissions.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
UNPACKED = ROOT / "build/gpu-driver/root"

# The default configuration of dg2 and pvc allows groups of 0 work-items. Timestamps and copies by
# the blitter of pvc never end, so waiting for them would not end either.
_GROUPS = {"HardwareInfoOverride": "2x4x16"}
PRODUCTS: dict[str, dict[str, str]] = {
    "skl": {},
    "tgllp": {},
    "dg2": _GROUPS,
    "pvc": _GROUPS | {"EnableTimestampPacket": "0", "EnableBlitterForEnqueueOperations": "0"},
}


def driver() -> Path | None:
    """Return the GPU driver that ``.ci/gpu-driver`` unpacked, or ``None``."""
    return next(UNPACKED.rglob("libigdrcl.so"), None) if UNPACKED.is_dir() else None


def environment(product: str, cache: Path) -> dict[str, str]:
    """Return the variables for a process that sees a GPU and the CPU."""
    gpu = driver()
    assert gpu is not None
    own = Path(sys.prefix, "lib")
    libraries = [own, *sorted({file.parent for file in UNPACKED.rglob("lib*.so*")})]
    return {
        **os.environ,
        **PRODUCTS[product],
        "LD_LIBRARY_PATH": ":".join(map(str, libraries)),
        "OCL_ICD_VENDORS": "/nonexistent",
        "OCL_ICD_FILENAMES": f"{gpu}:{own / 'libintelocl.so'}",
        "ONEAPI_DEVICE_SELECTOR": "opencl:*",
        "NEOReadDebugKeys": "1",
        "SetCommandStreamReceiver": "1",
        "AUBDumpCaptureFileName": "/dev/null",
        # Otherwise a launch lists all USM allocations of the context, also one that a host task of
        # dpnp frees meanwhile on another thread; the driver then reads freed memory.
        "DisableIndirectAccess": "1",
        "MALLOC_PERTURB_": "255",  # glibc clears memory that it allocates, also that of arrays
        "ProductFamilyOverride": product,
        "DPARRAY_CACHE_DIR": str(cache),
        "DPARRAY_NOTICES": "0",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests"), str(Path(__file__).parent)]),
    }
