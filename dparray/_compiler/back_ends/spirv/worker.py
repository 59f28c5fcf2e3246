"""The helper process that reads modules as LLVM IR and writes them as SPIR-V.

It imports llvmlite and the rules, but nothing else of dparray. LLVM's back end for SPIR-V leaves
state behind that breaks the next module, and its errors end the process. Each module is therefore
written by a new fork, which is created in advance.

The back end miscompiles unsupported constructs or ends the process. Each rule avoids such a case,
with a test in ``tests/compiler/test_backend_rules.py``.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
from typing import Any, NamedTuple

from dparray._compiler.abi import INTEL_CPU, TRIPLE
from dparray._compiler.back_ends.spirv import meetings
from dparray._compiler.back_ends.spirv.intel_cpu.opencl_version import VERSION
from dparray._compiler.back_ends.spirv.intel_gpu import switches
from dparray._compiler.back_ends.spirv.protocol import (
    ANSWER,
    ASSEMBLY,
    BINARY,
    LENGTH,
    OPTIMISED,
    REQUEST,
)
from dparray._compiler.back_ends.spirv.rules import OPTIONS, writable

SPEED = 2  # LLVM's optimization level, from 0 to 3


def optimise(binding: Any, machine: Any, module: Any, speed: int = SPEED) -> None:
    """Run LLVM's passes over a module whose functions except the entry point are internal."""
    tuning = binding.create_pipeline_tuning_options(speed_level=speed)
    # The driver vectorizes over work-items.
    tuning.loop_vectorization = tuning.slp_vectorization = tuning.loop_interleaving = False
    tuning.loop_unrolling = True
    builder = binding.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    cleaning = binding.create_new_module_pass_manager()
    switches.add_passes(cleaning)
    cleaning.add_global_dead_code_eliminate_pass()
    cleaning.add_strip_dead_prototype_pass()
    cleaning.run(module, builder)


def optimised(binding: Any, machine: Any, module: Any, driver: str, speed: int = SPEED) -> str:
    """Return the text of a module, optimized, in a form that the back end writes correctly."""
    text = str(module)
    meeting = meetings.add(text)
    if meeting != text:
        module = binding.parse_assembly(meeting)
    optimise(binding, machine, module, speed)
    return writable(str(module), driver)


def _machine(binding: Any) -> Any:
    """Return a new target machine: each writes one module, and takes 1 ms to create."""
    return binding.Target.from_triple(TRIPLE).create_target_machine(opt=SPEED)


def _optimised(binding: Any, machine: Any, text: str, driver: str) -> str:
    head = f'target datalayout = "{machine.target_data}"\ntarget triple = "{TRIPLE}"\n'
    return optimised(binding, machine, binding.parse_assembly(head + text + VERSION), driver)


def _written(binding: Any, machine: Any, text: str, wanted: int) -> bytes:
    """Return the back end's output for a module, from a machine that has not written any."""
    module = binding.parse_assembly(text)
    if wanted == ASSEMBLY:
        assembly: str = machine.emit_assembly(module)
        return assembly.encode()
    binary: bytes = machine.emit_object(module)
    return binary


# Memory that a fork first touches is copied or mapped, which takes as long as writing a module, so
# a fork does this in advance. The passes leave no state behind, and neither does the back end for a
# module without functions.
_REHEARSAL = """
declare spir_func i64 @_Z13get_global_idj(i32)
declare spir_func float @_Z3expf(float)
define spir_kernel void @rehearsal(ptr addrspace(1) %x, i64 %n) {
entry:
  %id = call spir_func i64 @_Z13get_global_idj(i32 0)
  br label %body
body:
  %at = phi i64 [ %id, %entry ], [ %next, %body ]
  %place = getelementptr float, ptr addrspace(1) %x, i64 %at
  %old = load float, ptr addrspace(1) %place
  %new = call spir_func float @_Z3expf(float %old)
  store float %new, ptr addrspace(1) %place
  %next = add i64 %at, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %body, label %end
end:
  ret void
}
"""
_EMPTY = f'target triple = "{TRIPLE}"\n'


class Writer(NamedTuple):
    """A fork that waits for one module and writes it.

    Attributes:
        process: its process id.
        request: the pipe from which it reads the module.
        output: the pipe to which it writes.
        errors: its error output.
    """

    process: int
    request: int
    output: int
    errors: int

    @classmethod
    def begun(cls, binding: Any) -> Writer:
        """Return a new fork that waits for a module."""
        request_from, request_to = os.pipe()
        output_from, output_to = os.pipe()
        error_from, error_to = os.pipe()
        child = os.fork()
        if child:
            for end in (request_from, output_to, error_to):
                os.close(end)
            return cls(child, request_to, output_from, error_from)
        try:
            for end in (request_to, output_from, error_from):
                os.close(end)
            os.dup2(error_to, 2)
            _written(binding, _machine(binding), _EMPTY, BINARY)
            optimiser, machine = _machine(binding), _machine(binding)
            _optimised(binding, optimiser, _REHEARSAL, INTEL_CPU)
            with os.fdopen(request_from, "rb") as request:
                head = request.read(REQUEST.size)
                text = request.read().decode()
            if len(head) == REQUEST.size:
                _, wanted, driver = REQUEST.unpack(head)
                content = b""
                if wanted == OPTIMISED:
                    driver = driver.rstrip(b"\0").decode()
                    text, wanted = _optimised(binding, optimiser, text, driver), BINARY
                    content = text.encode()
                    content = LENGTH.pack(len(content)) + content
                content += _written(binding, machine, text, wanted)
                with os.fdopen(output_to, "wb") as output:
                    output.write(LENGTH.pack(len(content)) + content)
            os._exit(0)
        except BaseException as error:
            os.write(2, repr(error).encode()[:4000])
            os._exit(3)

    def answer(self, request: bytes) -> tuple[int, bytes]:
        """Return 0 and the output 2 ms before the fork ends; for a failure, :meth:`ended`."""
        with contextlib.suppress(BrokenPipeError), os.fdopen(self.request, "wb") as out:
            out.write(request)
        with os.fdopen(self.output, "rb") as output:
            head = output.read(LENGTH.size)
            if len(head) == LENGTH.size:
                content = output.read(length := LENGTH.unpack(head)[0])
                if len(content) == length:
                    return 0, content
        return self.ended()

    def ended(self) -> tuple[int, bytes]:
        """Wait for the fork; return its exit status and its error output."""
        with os.fdopen(self.errors, "rb") as errors:
            complaint = errors.read()
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1]), complaint


def main(packages: str, extensions: str) -> None:
    """Answer requests until there are no more."""
    os.setsid()  # signals of a terminal to the parent's group must not reach this process
    sys.path.insert(0, packages)
    binding = importlib.import_module("llvmlite.binding")

    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    binding.set_option("", f"--spirv-ext={extensions}")
    for option in OPTIONS:
        binding.set_option("", option)
    # Loaded once, before forking.
    _written(binding, _machine(binding), _EMPTY, BINARY)
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while True:
        writer = Writer.begun(binding)
        head = requests.read(REQUEST.size)
        if len(head) < REQUEST.size:
            writer.answer(b"")
            return
        request = head + requests.read(REQUEST.unpack(head)[0])
        status, content = writer.answer(request)
        # the system may have killed it for its memory use while it waited
        if status == -signal.SIGKILL:
            writer = Writer.begun(binding)
            status, content = writer.answer(request)
        try:
            answers.write(ANSWER.pack(status, len(content)) + content)
            answers.flush()
        except BrokenPipeError:  # The parent ended meanwhile. Closing the stream would raise again.
            os._exit(0)
        if not status:
            writer.ended()
