"""Device code: dparray's handwritten kernels, imported as ``dparray.kernels``.

There is one module for each family of algorithms. A cached factory,
``make_<algorithm>_kernel(op, dtype, work_group_size)``, creates a kernel, which takes its
parameters in the order inputs, outputs, scalars. In: operations and dtypes. Out: kernel functions.
Imports: rows up to ``language``, so nothing of the host side.
"""
