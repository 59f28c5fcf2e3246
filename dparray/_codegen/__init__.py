"""Code generation: from expressions to the source code of kernels.

Pure and deterministic, without a device.
In: nodes. Out: kernel structures and their source. Imports: rows up to ``language``.
"""
