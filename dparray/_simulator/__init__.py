"""Kernels in plain Python: ``dp.simulate`` runs every work-item on the host and checks it."""
