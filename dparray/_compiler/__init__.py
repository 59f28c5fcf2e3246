"""Compile the kernel language: Python functions become modules, and programs for a device.

Input: a function, type keys of its arguments, options. Output: a compiled kernel, from memory, from
disk or newly compiled. Imports the runtime, the kernel language and the source writers.
"""

from dparray._compiler import llvmlite_patches as llvmlite_patches
