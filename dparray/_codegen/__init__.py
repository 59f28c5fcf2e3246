"""Code generation: from expressions to the source code of kernels.

Takes nodes; returns kernel structures and their source. Pure and deterministic: imports the graph
and the base modules, and no SYCL package.
"""
