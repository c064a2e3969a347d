"""What programs use of SciPy: small sparse matrices."""

from . import sparse as sparse
