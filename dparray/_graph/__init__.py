"""The expression graph: tables of operations and reductions, nodes, and views of expressions.

The array layer creates nodes and the evaluator computes them. Imports only the base modules, and no
SYCL package.
"""
