"""Back ends, which make modules for drivers from the LLVM IR that front ends write.

`dparray._compiler.targets` alone imports a back end, by its name; they do not import each other.
In: LLVM IR that calls device functions (`dparray._compiler.abi`), and a target. Out: SPIR-V, PTX,
or LLVM IR for the host. Imports: rows up to ``compiler``, and ``llvmlite``.
"""
