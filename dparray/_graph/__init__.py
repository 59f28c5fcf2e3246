"""The expression graph: tables of operations and reductions, nodes, and views of expressions.

In: layouts and operands, from ``_array``. Out: nodes, which ``_evaluate`` computes.
Imports: rows up to ``runtime``.
"""
