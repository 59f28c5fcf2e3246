"""Functions that the processor calls once: native code of compiled functions, without a queue.

State: the functions' code, as long as somebody keeps it.
"""

from __future__ import annotations

import hashlib
from itertools import count
from typing import Any, NamedTuple

from llvmlite import __version__ as llvmlite_version
from llvmlite import binding as llvm

from dparray._driver.host.devices import features, root, traits
from dparray._driver.host.frame import RUN
from dparray._driver.host.modules import (
    Kernel,
    inline_variants,
    jit,
    lock,
    machine,
    sources,
    vectorize,
)
from dparray._driver.interface import Store, Target

_numbers = count(1)


class Code(NamedTuple):
    """The code of a function.

    Attributes:
        address: of a C function that takes the address of its arguments, 64-bit words.
        kept: the object that keeps it in memory.
    """

    address: int
    kept: Any


def target() -> Target:
    """Return the target of modules for the processor."""
    return traits(root()).target


def load(module: bytes, entry: str, symbols: dict[str, int], binaries: Store) -> Code:
    """Return the code of a function, from the disk cache if it is there.

    Args:
        module: of the back end for hosts.
        entry: the name of the function, which returns nothing.
        symbols: the addresses of the C functions that it calls, by name.
        binaries: the disk cache.
    """
    text = module.decode()
    key = hashlib.sha256(sources() + llvmlite_version.encode())
    for each in (llvm.get_host_cpu_name(), features(), "function", text):
        key.update(each.encode() + b"\0")
    with lock:
        code = binaries.load(key.hexdigest())
        if code is None:
            code = _compiled(text, entry)
            binaries.save(key.hexdigest(), code)
        library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        for name, address in symbols.items():
            library = library.import_symbol(name, address)
        tracker = library.export_symbol(RUN).link(jit(), f"function {next(_numbers)}")
        return Code(tracker[RUN], tracker)


def _compiled(text: str, entry: str) -> bytes:
    """Return the object code of a module, with a function that loads the arguments."""
    parsed = llvm.parse_assembly(text)
    lines = [f"define void @{RUN}(ptr noalias readonly %data) {{"]
    values = []
    for at, each in enumerate(parsed.get_function(entry).arguments):
        lines.append(f"  %a{at} = getelementptr i64, ptr %data, i64 {at}")
        lines.append(f"  %v{at} = load {each.type}, ptr %a{at}")
        values.append(f"{each.type} %v{at}")
    lines += [f"  call void @{entry}({', '.join(values)})", "  ret void", "}", ""]
    module = llvm.parse_assembly("\n".join([text, *lines]))
    module.get_function(entry).linkage = "internal"
    for _ in range(2):
        vectorize(module)
    inline_variants(module)
    return bytes(machine().emit_object(module))


def load_kernel(module: bytes, entry: str, ndim: int, binaries: Store) -> tuple[Code, int, int]:
    """Return the code of a kernel over a range without groups, and the least sizes of its pieces.

    The sizes are those of :meth:`Kernel.pieces`. Functions launch it by its address.
    """
    kernel = Kernel(module, entry, binaries)
    variant = kernel.variant(ndim, None)
    return Code(variant.run, (kernel, variant)), *kernel.pieces(variant)
