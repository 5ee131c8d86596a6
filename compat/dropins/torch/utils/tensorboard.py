"""torch.utils.tensorboard: SummaryWriter of the package tensorboardX, which writes the same files."""

try:
    from tensorboardX import SummaryWriter
except ImportError:

    class SummaryWriter:
        """Without the package: raises, naming it."""

        def __init__(self, *args: object, **kwargs: object) -> None:
            raise ImportError(f"{__name__}.SummaryWriter needs the package tensorboardX: pip install tensorboardX")


__all__ = ["SummaryWriter"]
