"""Find NVIDIA's driver, without a context on any GPU."""

from __future__ import annotations

import importlib
import sys

#: The oldest supported version of CUDA, in the encoding of `cuDriverGetVersion`.
_OLDEST = 13000
PACKAGE = "cuda-core"
#: The packages of the extra, whose name works only where an index has dparray.
INSTALL = (
    'pip install "cuda-bindings==13.*" "cuda-core>=1.2,<2" "cupy-cuda13x[ctk]>=14" '
    '"nvidia-nvvm>=13"'
)


def absence() -> tuple[str, str] | None:
    """Return why the driver cannot be used, and the fix; ``None`` if it can.

    It imports cuda-core and initializes CUDA, so it is called when CUDA is first asked for.
    """
    try:
        importlib.import_module("cuda.core")
        bindings = importlib.import_module("cuda.bindings.driver")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("cuda"):
            raise
        is_offered = sys.platform == "linux"
        fix = (
            f"{INSTALL}, for NVIDIA GPUs"
            if is_offered
            else "dparray uses NVIDIA GPUs on Linux only"
        )
        return "cuda-core is not installed", fix
    try:
        _, version = bindings.cuDriverGetVersion()
        (status,) = bindings.cuInit(0)
    except RuntimeError:  # raised by cuda-pathfinder if it finds no library
        return (
            "the NVIDIA driver is not installed (libcuda.so.1)",
            "install NVIDIA's driver 580 or newer",
        )
    if version < _OLDEST:
        cuda_version = f"{version // 1000}.{version % 1000 // 10}"
        return (
            f"the NVIDIA driver is for CUDA {cuda_version}, and dparray needs CUDA 13",
            "install NVIDIA's driver 580 or newer",
        )
    if status not in (0, bindings.CUresult.CUDA_ERROR_NO_DEVICE):
        return f"CUDA does not start: {status.name}", "run `nvidia-smi`, which shows the reason"
    return None
