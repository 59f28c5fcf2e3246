"""Rules against defects of Intel's compiler for GPUs, applied to all modules.

The rules against Intel's CPU driver need them, too. They restrict other drivers in nothing.
"""
