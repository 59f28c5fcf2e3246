"""Evaluation: pending nodes go in, submitted work comes out, by a plan.

The way of an expression: ``evaluate`` and ``writes`` are asked, ``schedule`` makes a ``plan`` by
the rules of ``fusion``, ``passes`` and ``limits``, and ``execute`` carries it out with ``kernels``,
``host`` or ``library``. ``eager`` finds the plan of one operation without an expression;
``readers`` knows what is referenced from outside. Imports the compiler, the generators of kernels,
memory and what is below, and knows no array.
"""
