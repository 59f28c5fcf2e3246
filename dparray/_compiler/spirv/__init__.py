"""The back end for SPIR-V: LLVM IR becomes a module that drivers of OpenCL and Level Zero build."""
