# refused for: not yours | line 2 imports course_kernels
from course_kernels.measure.roofline import floor_us
