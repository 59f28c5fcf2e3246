"""Evaluate pending nodes by a bound plan, and submit the work.

The entry points are ``evaluate`` and ``writes``; ``bound_plan`` stores plans. ``schedule`` makes a
``plan`` by the rules of ``fusion``, ``passes`` and ``limits``, and ``execute`` runs it with
``kernels``, ``host`` or ``library``. ``readers`` tracks references from outside. Imports the
compiler, the kernel generators, memory and all lower layers, but no array class.
"""
