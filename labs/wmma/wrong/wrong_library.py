# refused for: not yours | imports course_kernels.gemm
from course_kernels.gemm.library import cublas as gemm

__all__ = ["gemm"]
