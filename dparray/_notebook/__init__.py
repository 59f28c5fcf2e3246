"""Jupyter support: rich displays, magics, completion and progress bars.

In: arrays, kernels, errors and devices. Out: HTML and text for a notebook. Imports: rows up to
``tools``, and ``IPython`` and ``tqdm`` only if a program loaded them.
"""
