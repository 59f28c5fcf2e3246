"""The requests and answers of the helper process."""

from struct import Struct

REQUEST = Struct("<qi16s")  # length of the text; requested output; the target's compiler
ANSWER = Struct("<iq")  # the exit status; the length of what follows
# The output for a module that is already optimized, and for one that is not: the length of its
# optimized text, the text, and the binary.
BINARY, ASSEMBLY, OPTIMISED = range(3)
LENGTH = Struct("<q")
