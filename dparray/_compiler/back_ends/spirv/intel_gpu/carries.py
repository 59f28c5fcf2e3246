"""Keep sums from having a carry: code generation is not prepared by LLVM, for all drivers.

CodeGenPrepare converts a sum that is also compared to an addition with carry (OpIAddCarry). LLVM's
options belong to a process, and no pass may change a module after the other rules.

Defect of IGC 1.0.12504: the compiler for Intel's GPUs crashes on additions with carry.
Tests: test_sums_that_are_compared_have_no_carry.
"""

OPTIONS = ("--disable-cgp",)
