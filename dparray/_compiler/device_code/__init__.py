"""Overloads of Python, NumPy and the kernel language: the operations of device code.

In: calls and operators by Numba's types. Out: LLVM instructions, or Python that the compiler
compiles in their stead. Imported by the backend alone; imports the target, its types and numba.
"""
