"""Back ends, which make modules for drivers from the LLVM IR that front ends write.

Input: LLVM IR that calls device functions (`dparray._compiler.abi`), and a target. Output: a module
of a target: SPIR-V, PTX, or LLVM IR for the host. `dparray._compiler.targets` alone imports a back
end, by its name; they do not import each other.
"""
