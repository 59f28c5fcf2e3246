"""Overloads of Python, NumPy and the kernel language for device code.

Input: calls and operators by Numba's types. Output: LLVM instructions, or replacement Python code.
Imported only by the backend; imports the target, its types and Numba.
"""
