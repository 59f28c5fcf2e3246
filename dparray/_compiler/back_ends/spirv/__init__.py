"""The back end for SPIR-V: LLVM IR becomes a module that drivers of OpenCL and Level Zero build.

A helper process runs LLVM and the rules, which are in files of their own: those against defects of
one driver in its folder. In: LLVM IR, and a target. Out: optimized LLVM IR, and SPIR-V.
Imports: rows up to ``compiler``, and ``llvmlite``.
"""
