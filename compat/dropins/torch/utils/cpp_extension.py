"""torch.utils.cpp_extension: no compiler is looked for; what builds and loads extensions says so."""

CUDA_HOME = CUDNN_HOME = ROCM_HOME = ROCM_VERSION = SYCL_HOME = None
