"""The base class of optimizers: tapegrad's, and the class of OneFlow's groups."""

from typing import Any

from tapegrad import compat

compat.mirror(__name__, "tapegrad.optim.optimizer")


class ParamGroup(dict):  # type: ignore[type-arg]
    """Parameters and settings; those that are not given are the default ones."""

    def __init__(self, parameters: dict[str, Any], default_options: dict[str, Any]) -> None:
        super().__init__({**default_options, **parameters})

    @property
    def parameters(self) -> list[Any]:
        """The parameters."""
        return list(self["params"])
