"""Numbers of four bits that share a scale: NVFP4, MXFP4 and INT4, their encoder, and their quantiser in Triton."""
