"""The requests and answers of the helper process, and names that it shares with the front end."""

from struct import Struct

REQUEST = Struct("<qi16s")  # length of the text; requested output; the target's compiler
ANSWER = Struct("<iq")  # the exit status; the length of what follows
# The output for a module that is already optimized, and for one that is not: the length of its
# optimized text, the text, and the binary.
BINARY, ASSEMBLY, OPTIMISED = range(3)
LENGTH = Struct("<q")
TRIPLE = "spirv64-unknown-unknown"
INTEL_CPU = "intel-cpu"  # a target's compiler
# A function of the front end. LLVM's passes compute indices in 64 bits and cut the result, where a
# GPU multiplies 32 bits in one instruction and 64 in several. So indices of 32 bits are cut by
# this function while the passes run.
LOW_BITS = "dparray.low_bits"
