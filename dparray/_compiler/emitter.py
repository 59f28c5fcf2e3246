"""The helper process: it reads LLVM's text of modules and writes the SPIR-V of each.

Run as a script; it imports llvmlite and nothing of dparray. LLVM's back end for SPIR-V leaves state
behind that spoils the next module, and an error of it ends the process; so each module is written
by a fresh fork.
"""

import importlib
import os
import struct
import sys
from typing import Any

REQUEST = struct.Struct("<qi")  # the length of the text; what is wanted
ANSWER = struct.Struct("<iq")  # the exit status; the length of what follows
BINARY, ASSEMBLY = range(2)
# It makes pointers that loops count up of the indices of elements, and Intel's CPU driver does not
# see then that neighbouring work-items read neighbouring elements: a sum takes 14 times as long.
OPTIONS = ("--disable-lsr",)
TRIPLE = "spirv64-unknown-unknown"


def emitted(binding: Any, text: str, wanted: int) -> bytes:
    """The back end's output for a module."""
    machine = binding.Target.from_triple(TRIPLE).create_target_machine(opt=2)
    module = binding.parse_assembly(text)
    if wanted == ASSEMBLY:
        assembly: str = machine.emit_assembly(module)
        return assembly.encode()
    binary: bytes = machine.emit_object(module)
    return binary


def answer(binding: Any, text: str, wanted: int) -> tuple[int, bytes]:
    """The exit status of the fork that writes a module, and its output or its error."""
    output_from, output_to = os.pipe()
    error_from, error_to = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.dup2(error_to, 2)
            content = emitted(binding, text, wanted)
            with os.fdopen(output_to, "wb") as output:
                output.write(content)
            os._exit(0)
        except BaseException as error:
            os.write(2, repr(error).encode()[:4000])
            os._exit(3)
    os.close(output_to)
    os.close(error_to)
    with os.fdopen(output_from, "rb") as output:
        content = output.read()
    with os.fdopen(error_from, "rb") as errors:
        complaint = errors.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status, complaint if status else content


def main(packages: str, extensions: str) -> None:
    """Answer requests until there are no more."""
    os.setsid()  # an interrupt of the parent is none of ours
    sys.path.insert(0, packages)
    binding = importlib.import_module("llvmlite.binding")

    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    binding.set_option("", f"--spirv-ext={extensions}")
    for option in OPTIONS:
        binding.set_option("", option)
    # Loaded once, before the forks; a module without functions leaves no state behind.
    emitted(binding, f'target triple = "{TRIPLE}"\n', BINARY)
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while True:
        head = requests.read(REQUEST.size)
        if len(head) < REQUEST.size:
            return
        length, wanted = REQUEST.unpack(head)
        status, content = answer(binding, requests.read(length).decode(), wanted)
        answers.write(ANSWER.pack(status, len(content)) + content)
        answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
