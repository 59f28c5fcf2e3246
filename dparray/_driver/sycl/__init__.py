"""Drive devices through SYCL, by dpctl.

Input: calls of :class:`dparray._driver.interface.Driver`, which `driver.py` collects. Output:
dpctl's objects. Imports dpctl and the ground modules. `prepare.py` runs before dpctl is imported,
so this file imports nothing.
"""
