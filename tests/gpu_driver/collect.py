"""Write the SPIR-V modules that a GPU would get into a folder, on the CPU device.

    python collect.py FOLDER

The calls of the call list run with the CPU device treated as a GPU, which compiles everything. Each
kernel is compiled for a GPU's driver, too. That module is a file NAME.spv; NAME.json has its
options.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any


def main(folder: Path) -> None:
    os.environ["CALLS_DEVICE"] = "cpu"
    os.environ["DPARRAY_KERNEL_STORE"] = ""
    os.environ["DPARRAY_BACKGROUND_COMPILE"] = "0"
    os.environ["DPARRAY_CACHE_DIR"] = tempfile.mkdtemp()
    folder.mkdir(parents=True, exist_ok=True)
    import as_gpu
    import calls

    import dparray.special
    from dparray._compiler.back_ends.spirv import client
    from dparray._driver.interface import Target
    from dparray._driver.sycl import driver

    as_gpu.play_gpu()
    known = calls.names()
    load, optimised = driver.load, client.optimised
    running = ""
    modules: dict[bytes, bytes] = {}  # those for a GPU, by those for the CPU

    def for_both(text: str, target: Any, contracts: bool) -> tuple[str, bytes]:
        found = optimised(text, target, contracts)
        modules[found[1]] = optimised(text, Target("spirv64"), contracts)[1]
        return found

    def keep(queue: Any, spirv: bytes, entry: str, options: str, binaries: Any) -> Any:
        module = modules[spirv]
        name = hashlib.sha256(module + options.encode()).hexdigest()[:16]
        (folder / f"{name}.spv").write_bytes(module)
        about = json.dumps({"options": options, "call": running})
        (folder / f"{name}.json").write_text(about)
        return load(queue, spirv, entry, options, binaries)

    driver.load, client.optimised = keep, for_both
    raised = 0
    only = os.environ.get("CALLS_ONLY", "")
    for group, text in calls.calls():
        if group in calls.NEED_TWO_DEVICES or only not in group:
            continue
        running = text
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                calls.finish(eval(text, known))
            except Exception as error:
                raised += 1
                print(f"{text}: {type(error).__name__}: {str(error)[:160]}", flush=True)
    print(len(list(folder.glob("*.spv"))), "modules;", raised, "calls raised")
    assert dparray.special


if __name__ == "__main__":
    main(Path(sys.argv[1]))
