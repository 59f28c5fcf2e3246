"""Jupyter: cards, magics, completion and progress bars.

In: arrays, kernels, errors and devices. Out: HTML and text that a notebook shows. Imports all rows
below the tools, and IPython only where a notebook has loaded it.
"""
