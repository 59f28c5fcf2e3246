"""Evaluation: pending nodes go in, submitted work comes out, by a bound plan.

``evaluate`` and ``writes`` are called; ``bound_plan`` keeps plans. ``schedule`` makes a ``plan`` by
the rules of ``fusion``, ``passes`` and ``limits``, and ``execute`` carries it out with ``kernels``,
``host`` or ``library``. ``readers`` knows what is referenced from outside. Imports the compiler,
the generators of kernels, memory and what is below, and knows no array.
"""
