# refused for: not yours | course_kernels.attention
from course_kernels.attention.problem import reference as attention

__all__ = ["attention"]
