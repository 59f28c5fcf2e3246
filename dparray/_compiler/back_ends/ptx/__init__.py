"""Code generation for NVIDIA GPUs: PTX from the LLVM IR that the compiler generates for kernels.

The LLVM IR names device functions as OpenCL and SPIR-V do, and uses address spaces 1 (global) and 3
(local), which have the same numbers in NVPTX. So function bodies stay as they are: each device
function that a module declares gets a definition (``definitions``), and the head, the calling
conventions and the parameters in local memory are replaced (``translation``). A helper process
(``worker``, started by ``client``) links NVIDIA's math library, optimizes and writes PTX.

In: LLVM IR. Out: PTX. Imports: rows up to ``compiler``, and ``llvmlite``.
"""
