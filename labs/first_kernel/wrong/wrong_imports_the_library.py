# refused for: not yours | line 2 imports course_kernels.vector_add
from course_kernels.vector_add.k02_triton import vector_add
