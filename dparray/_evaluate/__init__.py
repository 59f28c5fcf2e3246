"""Evaluate pending nodes by a bound plan, and submit the work.

The entry points are ``evaluate`` and ``writes``; ``bound_plan`` stores plans. ``schedule`` makes a
``plan`` by the rules of ``fusion`` and ``limits``, and ``execute`` runs it with ``kernels``,
``host`` or ``library``. ``dependents`` finds references from outside. No array class is known here.
In: nodes. Out: their values, as submitted work. Imports: rows up to ``compiler``.
"""
