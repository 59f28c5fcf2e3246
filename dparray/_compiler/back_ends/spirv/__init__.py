"""The back end for SPIR-V: LLVM IR becomes a module that drivers of OpenCL and Level Zero build.

Input: the front end's modules as text, and a target. Output: optimized text and SPIR-V. A helper
process runs LLVM and the rules, which are in files of their own: those against defects of one
driver in its folder. Imports nothing of dparray except targets and exceptions.
"""
