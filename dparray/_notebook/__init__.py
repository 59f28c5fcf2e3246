"""Jupyter support: rich displays, magics, completion and progress bars.

Input: arrays, kernels, errors and devices. Output: HTML and text for a notebook. Imports all layers
below the tools, and IPython only if a notebook loaded it.
"""
