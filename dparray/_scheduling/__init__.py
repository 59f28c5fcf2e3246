"""Placement policies: which device computes which step of an expression.

An expression under a policy passes through these modules: ``cut`` divides it into steps by the
rules of fusion, and ``device_costs`` estimates the cost of steps and copies on each device.
``heft`` assigns the steps; ``device_schedule`` computes when each would run. ``executor`` lets the
evaluator compute them with the required copies, and ``eager_operands`` copies the operands of eager
functions. ``policy`` is the user interface, ``trace`` the records for users, and ``simulated`` has
devices with a virtual clock. ``problem``, ``device_schedule`` and ``heft`` use no device. In: an
expression. Out: its value, on the devices chosen. Imports: rows up to ``array``.
"""
