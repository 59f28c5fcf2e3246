"""dparray's arrays as chunks of Dask's, and clusters with one worker for each device.

In: ``dask.array`` over dparray chunks, which Dask learns about as soon as both are imported. Here:
:class:`LocalCluster` and :func:`sort`. It needs the extra ``dask`` (``pip install dparray[dask]``);
nothing of Dask is imported before this module is. Out: chunks on their devices. Imports: rows up to
``functions``, and ``dask`` and ``distributed``.
"""

from __future__ import annotations

try:
    import distributed  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"dparray.dask needs Dask ({error.name} is missing): pip install 'dparray[dask]', or "
        "pip install 'dask[array,distributed]'",
        name=error.name,
    ) from error

from dparray.dask.cluster import LocalCluster
from dparray.dask.sample_sort import sort
from dparray.dask.spill import DeviceSpill

__all__ = ["DeviceSpill", "LocalCluster", "sort"]
