"""Code generation for the host processor: portable LLVM IR from that which the compiler generates.

Address spaces are removed, and each device function gets a definition that is inlined
(``functions``, ``mathematics``, ``atomics``). Functions that concern several work-items (ids,
barriers, group functions) stay declarations: the driver compiles the module for each size of group
(`dparray/_driver/host/`). In: LLVM IR. Out: the same. Imports: rows up to ``compiler``,
``llvmlite``.
"""
