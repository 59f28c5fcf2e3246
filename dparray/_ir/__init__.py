"""The meaning of a kernel: a small typed program in structured control flow.

In: ops that a front end adds (``_language``, ``_codegen``). Out: a :class:`instructions.Function`,
which ``_compiler`` writes as LLVM text and ``_simulator`` runs. ``verify`` states which programs
are valid, ``text`` prints them, ``facts`` answers questions about them, ``passes`` rewrites them.
``adjoint`` derives the program that computes gradients, from the form without jumps that
``structured`` makes, with the elements of ``private_arrays`` as values.

Imports ``typing``, NumPy and ``_type_keys``; it knows nothing of Python's syntax trees, LLVM or
devices.
"""
