"""torch.fx: there are no graphs of programs; functions that were marked for it run as they are."""

import torch


class Graph:
    """A graph of a program: for annotations and isinstance; none can be made."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise NotImplementedError(f"torch.fx.{type(self).__name__}: tapegrad has no graphs of programs")


class GraphModule(torch.nn.Module):
    """A module that runs a graph: for annotations and isinstance; none can be made."""

    __init__ = Graph.__init__


def wrap(fn_or_name: object) -> object:
    """The function as it is."""
    return fn_or_name
