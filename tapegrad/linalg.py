"""Linear algebra under the names of torch.linalg."""

from __future__ import annotations

from .errors import LinAlgError as LinAlgError
from .functions.decompose import linalg_cholesky as cholesky
from .functions.decompose import linalg_cholesky_ex as cholesky_ex
from .functions.decompose import linalg_eig as eig
from .functions.decompose import linalg_eigh as eigh
from .functions.decompose import linalg_eigvals as eigvals
from .functions.decompose import linalg_eigvalsh as eigvalsh
from .functions.decompose import linalg_lu as lu
from .functions.decompose import linalg_lu_factor as lu_factor
from .functions.decompose import linalg_lu_factor_ex as lu_factor_ex
from .functions.decompose import linalg_qr as qr
from .functions.decompose import linalg_svd as svd
from .functions.decompose import linalg_svdvals as svdvals
from .functions.linalg import linalg_cross as cross
from .functions.linalg import linalg_diagonal as diagonal
from .functions.linalg import linalg_matmul as matmul
from .functions.linalg import linalg_multi_dot as multi_dot
from .functions.linalg import linalg_vander as vander
from .functions.linalg import linalg_vecdot as vecdot
from .functions.matrix import linalg_cond as cond
from .functions.matrix import linalg_det as det
from .functions.matrix import linalg_householder_product as householder_product
from .functions.matrix import linalg_inv as inv
from .functions.matrix import linalg_inv_ex as inv_ex
from .functions.matrix import linalg_lstsq as lstsq
from .functions.matrix import linalg_lu_solve as lu_solve
from .functions.matrix import linalg_matrix_exp as matrix_exp
from .functions.matrix import linalg_matrix_norm as matrix_norm
from .functions.matrix import linalg_matrix_power as matrix_power
from .functions.matrix import linalg_matrix_rank as matrix_rank
from .functions.matrix import linalg_norm as norm
from .functions.matrix import linalg_pinv as pinv
from .functions.matrix import linalg_slogdet as slogdet
from .functions.matrix import linalg_solve as solve
from .functions.matrix import linalg_solve_ex as solve_ex
from .functions.matrix import linalg_solve_triangular as solve_triangular
from .functions.matrix import linalg_tensorinv as tensorinv
from .functions.matrix import linalg_tensorsolve as tensorsolve
from .functions.matrix import linalg_vector_norm as vector_norm

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]


def __dir__() -> list[str]:
    return sorted(__all__)
