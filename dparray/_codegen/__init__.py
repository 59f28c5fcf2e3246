"""Expressions become the text of kernels: nodes go in, structures and their source come out.

Pure and deterministic: imports the graph and the ground, and no package of SYCL.
"""
