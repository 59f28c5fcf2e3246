"""Worked examples: array functions around handwritten kernels, meant for reading.

They look like a user's module: a kernel factory as in ``dparray.kernels``, and a function that
checks its arguments, finds the queue and launches the kernel. The benchmarks time them. The library
does not use them: for products there is :func:`dparray.matmul`.
"""

from tests.benchmarks.examples.bodies import nbody_acceleration
from tests.benchmarks.examples.elements import black_scholes, mandelbrot
from tests.benchmarks.examples.matrix import matmul, transpose

__all__ = ["black_scholes", "mandelbrot", "matmul", "nbody_acceleration", "transpose"]
