"""Write SPIR-V from LLVM IR, with a helper process that forks for each module.

State: the helper, started at the first use or by :func:`start`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dparray._compiler.back_ends.helper_process import HelperProcess, folder_of_llvmlite
from dparray._compiler.back_ends.spirv import protocol, words
from dparray._compiler.targets import EmissionError
from dparray._driver.interface import Target
from dparray._ir.instructions import Function

#: SPIR-V extensions that kernels may use.
EXTENSIONS = (
    "SPV_EXT_shader_atomic_float_add",
    "SPV_EXT_shader_atomic_float_min_max",
    "SPV_ALTERA_arbitrary_precision_integers",
)
# The helper loads none of dparray's packages beside this one, whose `__init__` imports all layers.
_PROGRAM = """
import sys, types
package = sys.modules["dparray"] = types.ModuleType("dparray")
package.__path__ = [sys.argv[1]]
from dparray._compiler.back_ends.spirv import worker
worker.main(*sys.argv[2:])
"""


def _command() -> list[str]:
    extensions = ",".join(f"+{name}" for name in EXTENSIONS)
    ours = str(Path(__file__).parents[3])
    program = ["-I", "-S", "-c", _PROGRAM, ours]
    return [sys.executable, *program, folder_of_llvmlite(), extensions]


helper = HelperProcess("kernels", _command, protocol.ANSWER)
start = helper.start


def prepare(function: Function) -> None:
    """Leave a program as it is."""


def emit(text: str) -> bytes:
    """Return the SPIR-V of a module.

    Raises:
        EmissionError: the back end rejects it.
        KernelError: the helper does not start, or ends.
    """
    return _asked(text, protocol.BINARY)


def optimised(text: str, target: Target, contracts: bool = False) -> tuple[str, bytes]:
    """Return a module that is not optimized: its text when it is, and its SPIR-V.

    Args:
        text: the module.
        target: its target, whose rules are applied.
        contracts: whether products and sums may be contracted.

    Raises:
        EmissionError: the back end rejects it.
        KernelError: the helper does not start, or ends.
    """
    answer = _asked(text, protocol.OPTIMISED, target.compiler)
    start = protocol.LENGTH.size
    end = start + protocol.LENGTH.unpack_from(answer)[0]
    module = answer[end:]
    return answer[start:end].decode(), words.contracted(module) if contracts else module


needs = words.needs
check_module = words.check_module
without_float64 = words.without_printed_doubles


def readable(llvm: str, module: bytes) -> str:
    """Return the SPIR-V of an optimized text in readable form."""
    text = _asked(llvm, protocol.ASSEMBLY).decode()
    return words.contracted_text(text) if words.is_contracted(module) else text


def _asked(text: str, wanted: int, driver: str = "") -> bytes:
    content = text.encode()
    head = protocol.REQUEST.pack(len(content), wanted, driver.encode())
    status, answer = helper.ask(head + content)
    if status:
        complaint = answer.decode(errors="replace").strip() or f"exit status {status}"
        raise EmissionError(complaint)
    return answer
