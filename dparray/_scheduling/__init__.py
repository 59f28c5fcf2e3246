"""Policies of placement: which device computes which step of an expression.

The way of an expression that a policy binds: ``cut`` makes steps of it by the rules of fusion,
``device_costs`` says what each costs on each device and what copies cost, ``heft`` assigns the
steps (``timeline`` says when each would run), and ``executor`` lets the evaluator compute them
there, with the copies that they need. ``policy`` is what users switch, ``trace`` what they see,
``simulated`` are devices with a virtual clock. ``problem``, ``timeline`` and ``heft`` know nothing
of SYCL. Imports the evaluator and what is below, and knows no array.
"""
