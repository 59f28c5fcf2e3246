"""Keep LLVM from computing with integers of more than 64 bits.

Induction variable simplification compares the counts of a loop's exits in 128 bits if 64 could
overflow, and computes closed forms of sums in more than 64.

Defect of LLVM 22: integers of 65 and 128 bits, which SPIR-V does not have.
Tests: test_sums_over_a_loop_are_counted_in_64_bits,
    test_a_loop_with_two_exits_has_no_integers_of_128_bits.
"""

OPTIONS = ("--indvars-predicate-loops=false", "--replexitval=never")
