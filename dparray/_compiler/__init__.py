"""Compile the kernel language: Python functions become modules, and programs for a device.

In: a function, type keys of its arguments, options. Out: a compiled kernel, from memory, from
disk or newly compiled. Imports: rows up to ``codegen``, and ``llvmlite``.
"""

from dparray._compiler import llvmlite_patches as llvmlite_patches
