"""Worked examples: array functions around kernels of our own, written to be read.

They are what a user's own module would look like: a factory of a kernel in ``dparray.kernels``, and
a function that checks its arguments, finds the queue and launches it. The benchmarks time them.
Nothing of the library uses them: for products there is :func:`dparray.matmul`.
"""

from tests.benchmarks.examples.bodies import nbody_acceleration
from tests.benchmarks.examples.elements import black_scholes, mandelbrot
from tests.benchmarks.examples.matrix import matmul, transpose

__all__ = ["black_scholes", "mandelbrot", "matmul", "nbody_acceleration", "transpose"]
