"""Drive devices through SYCL, by dpctl.

`prepare.py` runs before dpctl is imported, so this file imports nothing. In: calls of
:class:`dparray._driver.interface.Driver`, which `driver.py` collects. Out: dpctl's objects.
Imports: rows up to ``driver``, and ``dpctl``.
"""
