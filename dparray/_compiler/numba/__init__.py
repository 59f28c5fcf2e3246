"""Compile functions of the kernel language with Numba's machinery, as a target of its own.

Input: a function, type keys of its arguments, options. Output: LLVM IR. The functions of the
language are in `device_code/`. This is the only folder of the compiler that imports Numba.
"""
