"""torch.nn.parallel: one device, so a module and its inputs stay as they are."""

from torch.nn import DataParallel as DataParallel


def data_parallel(
    module: object, inputs: object, device_ids: object = None, output_device: object = None, dim: int = 0,
    module_kwargs: dict | None = None,
) -> object:  # fmt: skip
    """What the module gives."""
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))


def replicate(network: object, devices: object, detach: bool = False) -> list:
    """The module, for each device."""
    return [network for _ in devices]


def scatter(inputs: object, target_gpus: object, dim: int = 0) -> list:
    """The inputs, whole."""
    return [inputs]


def gather(outputs: list, target_device: object, dim: int = 0) -> object:
    """The only output."""
    (output,) = outputs
    return output


def parallel_apply(modules: list, inputs: list, kwargs_tup: object = None, devices: object = None) -> list:
    """Each module's result."""
    kwargs_tup = kwargs_tup or [{}] * len(modules)
    calls = zip(modules, inputs, kwargs_tup, strict=True)
    return [m(*(i if isinstance(i, tuple) else (i,)), **k) for m, i, k in calls]
