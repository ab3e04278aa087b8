# refused for: not yours | imports course_kernels.sgemm
from course_kernels.sgemm.library import cublas as sgemm

__all__ = ["sgemm"]
