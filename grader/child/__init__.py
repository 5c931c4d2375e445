"""The untrusted side: runs a learner's file in Triton's interpreter and tells what its kernels did to memory."""
