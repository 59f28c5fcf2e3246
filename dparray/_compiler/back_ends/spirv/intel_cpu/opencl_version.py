"""Say that modules are OpenCL C, for all drivers; LLVM says that they are C++ for OpenCL.

Defect of Intel's CPU driver (version not recorded): ranges of two dimensions of C++ for OpenCL are
    not vectorized: a stencil takes 16 times as long.
Tests: test_modules_are_opencl_c, test_the_source_is_opencl_c.
"""

# The number is larger than those of a module's own metadata.
VERSION = "\n!opencl.ocl.version = !{!999999}\n!999999 = !{i32 3, i32 0}\n"
