"""The helper process that links libdevice to a module of LLVM IR, optimizes it and writes PTX.

It is run as a script and imports llvmlite, but nothing of dparray. LLVM ends the process for an
instruction that it cannot select, and its options are global to a process.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import struct
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

REQUEST = struct.Struct("<q")  # the length of the text
ANSWER = struct.Struct("<iq")  # 0, or 1 for an error message; the length of what follows
LENGTH = struct.Struct("<q")  # the length of the optimized text, which precedes the PTX

TRIPLE = "nvptx64-nvidia-cuda"
# The oldest GPUs that are supported. NVIDIA's driver compiles PTX for each later one.
PROCESSOR = "sm_75"
SPEED = 2  # LLVM's optimization level; level 3 writes a fifth more instructions, equal inner loops
# LLVM answers libdevice's question for flushed float32 denormals (no), but not that for precise
# square roots.
OPTIONS = ("--nvvm-reflect-add=__CUDA_PREC_SQRT=1",)

# --- rules ----------------------------------------------------------------------------------------

# LLVM 22 drops the guard of `amount < 64 ? x << amount : 0`, because PTX's shifts give 0 for large
# amounts (llvm/llvm-project#201165, fixed in 23). But PTX takes only the low 32 bits of an amount,
# and so does a shift in 32 bits of an amount in 64. LLVM does not recognize the guard of a masked
# amount, and a shift by all bits of a type or more has no value.
_SHIFTS = re.compile(
    r"^(?P<head>  %\S+ = (?:shl|lshr|ashr) (?:nuw |nsw |exact )*i(?P<bits>32|64) [^,\n]+, )"
    r"(?P<amount>%[^\s,]+)",
    re.MULTILINE,
)
# LLVM 22 extends the sign of `shl nsw i32 x, 31` by a product with -2**31 in 64 bits, which has the
# opposite sign (llvm/llvm-project#200924, fixed in 23).
_SIGN_BITS = re.compile(
    r"^(  %\S+ = shl )(?:nuw |nsw )+(i16 [^,\n]+, 15|i32 [^,\n]+, 31)$", re.MULTILINE
)


def writable(text: str) -> str:
    """Return the text of an optimized module without constructs that LLVM 22 miscompiles."""

    def with_mask(found: re.Match[str]) -> str:
        masked = f"%dparray.amount.{found.start()}"
        bits = int(found["bits"])
        mask = f"  {masked} = and i{bits} {found['amount']}, {bits - 1}"
        return f"{mask}\n{found['head']}{masked}"

    return _SIGN_BITS.sub(r"\1\2", _SHIFTS.sub(with_mask, text))


# --- libdevice ------------------------------------------------------------------------------------

_FUNCTIONS = re.compile(r"^define .*?^\}\n", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"@([\w.$]+)\(")
# A declared function that is neither LLVM's nor CUDA's: one that devices do not have.
_UNDEFINED = re.compile(r'^declare [^@\n]*@(?!llvm\.|vprintf\()"?([^"(\n]+)', re.MULTILINE)
_MISSING = re.compile(r"^declare [^@\n]*@\"(__nv_\w+)\"\(", re.MULTILINE)


class Libdevice:
    """NVIDIA's library of mathematical functions, read at its first use."""

    def __init__(self, binding: Any, path: str, head: str) -> None:
        self._binding, self._path, self._head = binding, path, head

    @functools.cached_property
    def _parts(self) -> tuple[dict[str, str], str]:
        """The text of each function, and the rest: tables, attributes and metadata."""
        text = str(self._binding.parse_bitcode(Path(self._path).read_bytes()))
        rest = re.sub(r"^(?:target|source_filename).*\n", "", _FUNCTIONS.sub("", text), flags=re.M)
        functions: dict[str, str] = {}
        for each in _FUNCTIONS.findall(text):
            found = _NAME.search(each)
            assert found is not None
            functions[found[1]] = each
        return functions, rest

    @functools.lru_cache(maxsize=64)  # noqa: B019  The only instance lives as long as the process.
    def part(self, wanted: frozenset[str]) -> bytes:
        """Return a module, as bitcode, of functions and those that they call."""
        functions, rest = self._parts
        chosen: dict[str, str] = {}
        waiting = sorted(wanted)
        while waiting:
            name = waiting.pop()
            if name in functions and name not in chosen:
                chosen[name] = functions[name]
                waiting += _NAME.findall(functions[name])
        text = self._head + rest + "".join(chosen.values())
        return bytes(self._binding.parse_assembly(text).as_bitcode())


# --- compilation ----------------------------------------------------------------------------------


def compiled(binding: Any, libdevice: Libdevice, head: str, text: str) -> tuple[str, str]:
    """Return the optimized text of a module, and its PTX unless it calls undefined functions."""
    machine = _machine(binding)
    module = binding.parse_assembly(head + text)
    wanted = frozenset(_MISSING.findall(text))
    if wanted:
        module.link_in(binding.parse_bitcode(libdevice.part(wanted)))
        for function in module.functions:
            if function.name.startswith("__") and not function.is_declaration:
                function.linkage = "internal"
    optimise(binding, machine, module)
    optimised = writable(str(module))
    if _UNDEFINED.search(optimised):
        return optimised, ""
    return optimised, machine.emit_assembly(binding.parse_assembly(optimised))


def optimise(binding: Any, machine: Any, module: Any) -> None:
    """Run LLVM's passes. Vector loads would need alignments that arrays do not have."""
    tuning = binding.create_pipeline_tuning_options(speed_level=SPEED)
    tuning.loop_vectorization = tuning.slp_vectorization = False
    tuning.loop_unrolling = True
    builder = binding.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    cleaning = binding.create_new_module_pass_manager()
    cleaning.add_global_dead_code_eliminate_pass()
    cleaning.add_strip_dead_prototype_pass()
    cleaning.run(module, builder)


def _machine(binding: Any) -> Any:
    return binding.Target.from_triple(TRIPLE).create_target_machine(cpu=PROCESSOR, opt=SPEED)


def head_of(binding: Any, options: Iterable[str] = OPTIONS) -> str:
    """Prepare LLVM; return the lines with which modules begin."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    for option in options:
        binding.set_option("", option)
    layout = _machine(binding).target_data
    return f'target datalayout = "{layout}"\ntarget triple = "{TRIPLE}"\n'


def main(packages: str, path: str) -> None:
    """Answer requests until there are no more.

    Args:
        packages: the folder with llvmlite.
        path: the file of libdevice.
    """
    if hasattr(os, "setsid"):
        os.setsid()  # signals of a terminal to the parent's group must not reach this process
    sys.path.insert(0, packages)
    binding = importlib.import_module("llvmlite.binding")
    head = head_of(binding)
    libdevice = Libdevice(binding, path, head)
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while len(length := requests.read(REQUEST.size)) == REQUEST.size:
        text = requests.read(REQUEST.unpack(length)[0]).decode()
        try:
            optimised, ptx = map(str.encode, compiled(binding, libdevice, head, text))
            status, content = 0, LENGTH.pack(len(optimised)) + optimised + ptx
        except Exception as error:
            status, content = 1, str(error).encode()
        try:
            answers.write(ANSWER.pack(status, len(content)) + content)
            answers.flush()
        except BrokenPipeError:  # The parent ended meanwhile. Closing the stream would raise again.
            os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
