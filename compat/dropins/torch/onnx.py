"""torch.onnx: nothing is exported."""


def is_in_onnx_export() -> bool:
    """False."""
    return False


is_onnxrt_backend_supported = is_in_onnx_export
