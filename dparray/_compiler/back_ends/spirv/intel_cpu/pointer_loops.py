"""Keep loops from incrementing pointers: loop strength reduction is off, for all drivers.

LLVM's options belong to a process, and no pass may change a module after the other rules.

Defect of Intel's CPU driver (version not recorded): the driver does not recognize that neighboring
    work-items read neighboring elements if loops increment pointers instead of indices: a sum takes
    14 times as long.
Tests: test_loops_count_indices_and_not_pointers.
"""

OPTIONS = ("--disable-lsr",)
