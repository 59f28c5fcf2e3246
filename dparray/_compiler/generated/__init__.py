"""Compile the source that dparray generates, without Numba.

Input: the source of a function in a small subset of Python, and type keys of its arguments. Output:
LLVM IR. Imports the kernel language and the names of device functions.
"""
