"""The meaning of a kernel: a small typed program in structured control flow.

``verify`` states which programs are valid, ``text`` prints them, ``facts`` answers questions about
them, ``passes`` rewrites them. ``adjoint`` derives the program that computes gradients, from the
form without jumps that ``structured`` makes, with the elements of ``private_arrays`` as values.

In: ops that ``_language`` adds. Out: an :class:`instructions.Function`, which ``_compiler`` writes
as LLVM text and ``_simulator`` runs. Imports: no other row, and nothing of Python's syntax
trees, LLVM or devices.
"""
