"""Patches of Numba itself: four functions without a public way to customize them.

Everything else uses subclasses, Numba's registries and passes. New patches belong here, with their
reason; none may affect programs that users compile with Numba itself.
"""

from __future__ import annotations

import sys
from typing import Any

from llvmlite import ir
from numba.core import cgutils, funcdesc, postproc, transforms, types
from numba.core.target_extension import current_target

from dparray._compiler.numba.pipeline import TARGET

_with_lifetimes = postproc.PostProcessor.run
_get_call_type = types.Function.get_call_type
_import_module = funcdesc.FunctionDescriptor.lookup_module


def _without_lifetimes(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """Replace Numba's step after each pass, without computing live variables for each block.

    Reason: the pass manager calls it after every pass that changes the IR, no option disables it,
    and it took a tenth of the time of a kernel. Only generators and loops that are compiled
    separately need the result; neither is device code.
    """
    function = self.func_ir
    if emit_dels or function.is_generator or current_target() != TARGET:
        _with_lifetimes(self, emit_dels, extend_lifetimes)
        return
    function.blocks = transforms.canonicalize_cfg(function.blocks)
    function.variable_lifetime = postproc.VariableLifetime(function.blocks)  # computed on demand
    function.generator_info = None


def _signature_in_context(self: types.Function, context: Any, args: Any, kws: Any) -> Any:
    """Return the signature of a call, which dparray's typing context may have cached.

    Reason: Numba tries everything that is registered for an operator, which took another tenth, and
    its typing and its lowering both call this method of the type, not of the context.
    """
    find = getattr(context, "signature_of", None)
    return _get_call_type(self, context, args, kws) if find is None else find(self, args, kws)


def _pointer_add(builder: Any, ptr: Any, offset: Any, return_type: Any = None) -> Any:
    """Return the address a number of bytes after ``ptr``, in its address space.

    Reason: Numba's version casts to a pointer without an address space, which global and local
    memory have, and its code for arrays calls it by this name. A host has only one address space.
    """
    if isinstance(offset, int):
        offset = cgutils.intp_t(offset)
    first = builder.bitcast(ptr, ir.IntType(8).as_pointer(ptr.type.addrspace))
    return builder.bitcast(builder.gep(first, [offset]), return_type or ptr.type)


def _module_of(self: Any) -> Any:
    """Return the module of a function, without waiting for the end of its import.

    Reason: kernels are compiled in a helper thread. A program that launches a kernel while its
    module is imported holds the lock of that import and waits for the helper. Numba would let the
    helper wait for the lock.
    """
    module = sys.modules.get(self.modname)
    return _import_module(self) if module is None else module


postproc.PostProcessor.run = _without_lifetimes
types.Function.get_call_type = _signature_in_context
cgutils.pointer_add = _pointer_add
funcdesc.FunctionDescriptor.lookup_module = _module_of
