# refused for: not yours | course_kernels.grey
from course_kernels.grey.k02_triton import grey_kernel


def grey(picture):
    H, W, _ = picture.shape
    out = picture.new_empty(H, W)
    grey_kernel[(H * W // 1024 + 1,)](picture, out, H * W, BLOCK=1024)
    return out
