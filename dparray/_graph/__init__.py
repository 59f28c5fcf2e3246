"""The expression graph: tables of operations and reductions, nodes, and views of expressions.

Nodes are what the array layer makes and the evaluator computes. Imports the ground alone, and no
package of SYCL.
"""
