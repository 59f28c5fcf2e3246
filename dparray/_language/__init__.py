"""The kernel language: what a kernel may refer to and call.

Input: Python functions. Output: their source, the values that they refer to, and the functions of
the language. Imports the kernel API, the device code and the intermediate representation, but no
compiler and no device.
"""
