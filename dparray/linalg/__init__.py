"""Linear algebra on matrices and stacks of matrices (the last two axes).

On a CPU device NumPy's LAPACK computes in the arrays' own memory, which is several times faster up
to some hundred rows; elsewhere, and on sub-devices for larger matrices, the device's library does.

In: arrays. Out: arrays on their queue. Imports: rows up to ``functions``.
"""

from dparray.linalg.decompositions import (
    EighResult,
    EigResult,
    QRResult,
    SVDResult,
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    qr,
    svd,
    svdvals,
)
from dparray.linalg.exponentials import expm
from dparray.linalg.factors import lu, lu_factor, lu_solve
from dparray.linalg.norms import cond, matrix_norm, matrix_rank, norm, vector_norm
from dparray.linalg.operands import LinAlgError
from dparray.linalg.products import cross, diagonal, matrix_power, multi_dot, outer, trace
from dparray.linalg.solving import (
    SlogdetResult,
    det,
    inv,
    lstsq,
    matmul,
    matrix_transpose,
    pinv,
    slogdet,
    solve,
    tensordot,
    tensorinv,
    tensorsolve,
    vecdot,
)
from dparray.linalg.triangular import cho_factor, cho_solve, solve_triangular

__all__ = [
    "EigResult",
    "EighResult",
    "LinAlgError",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "expm",
    "inv",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_solve",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]
