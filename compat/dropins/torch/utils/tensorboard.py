"""torch.utils.tensorboard: SummaryWriter of the package tensorboardX, which writes the same files."""

try:
    from tensorboardX import SummaryWriter as SummaryWriter
except ImportError:

    def __getattr__(name: str) -> object:
        if name == "SummaryWriter":  # at its import, where programs have a fallback
            raise ImportError(f"{__name__}.SummaryWriter needs the package tensorboardX: pip install tensorboardX")
        raise AttributeError(name)
