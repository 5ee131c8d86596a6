"""Recurrent layers and their cells."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from ..core.warning import warn
from ..functions import casting, create, recurrent
from ..tensor.tensor import Parameter, Tensor
from . import init
from .module import Module, shown
from .utils.rnn import PackedSequence

GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """Base of the recurrent layers RNN, LSTM and GRU.

    Args:
        mode: "LSTM", "GRU", "RNN_TANH" or "RNN_RELU".
        input_size: features of the input.
        hidden_size: features of the state.
        num_layers: number of stacked layers; each takes the outputs of the previous one.
        bias: whether there are biases.
        batch_first: inputs and outputs are (B, T, features), not (T, B, features); states are unaffected.
        dropout: probability of dropout on the outputs of all layers but the last, in training mode.
        bidirectional: a second set of layers runs backwards; the outputs of both are concatenated.
        proj_size: size to which h of an LSTM is projected; 0: no projection.

    Attributes:
        weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0: parameters of layer 0, (gates * hidden_size, ...), uniform on
            +-1 / sqrt(hidden_size); names of the backward direction end in `_reverse`.
        weight_hr_l0: (proj_size, hidden_size), with a projection.

    Raises:
        TypeError, ValueError: for arguments of a wrong type or out of range.
    """

    _bad_rank = "{}: Expected input to be 2D or 3D, got {}D instead"

    _LSTM, _GRU = staticmethod(recurrent.lstm), staticmethod(recurrent.gru)
    _RNN_TANH, _RNN_RELU = staticmethod(recurrent.rnn_tanh), staticmethod(recurrent.rnn_relu)

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, dropout
        self.bidirectional, self.proj_size = bidirectional, proj_size
        self._check_arguments()
        self.dropout = float(dropout)
        state, gates = proj_size or hidden_size, GATES[mode] * hidden_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            width = state * self._directions if layer else input_size
            for direction in range(self._directions):
                sizes: dict[str, tuple[int, ...]] = {"weight_ih": (gates, width), "weight_hh": (gates, state)}
                sizes |= {"bias_ih": (gates,), "bias_hh": (gates,)} if bias else {}
                sizes |= {"weight_hr": (proj_size, hidden_size)} if proj_size else {}
                names = {f"{name}_l{layer}{'_reverse' * direction}": size for name, size in sizes.items()}
                for name, size in names.items():
                    setattr(self, name, Parameter(create.empty(*size, dtype=dtype, device=device)))
                self._all_weights.append(list(names))
        self.reset_parameters()

    def _check_arguments(self) -> None:
        rate = self.dropout
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if rate > 0 and self.num_layers == 1:
            warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
                f"greater than 1, but got dropout={rate} and num_layers={self.num_layers}"
            )
        kinds = (("bias", bool), ("batch_first", bool), ("input_size", int), ("hidden_size", int))
        for name, kind in kinds:
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
            if kind is int and value <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in GATES:
            raise ValueError(f"Unrecognized RNN mode: {self.mode}")

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Any]:
        given = self.__dict__.get("_given_weights")
        return [getattr(self, name) for name in self._flat_weights_names] if given is None else given

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Any]) -> None:
        """Use these weights in forward until a parameter is set by name (as meta-learning and weight drop do)."""
        self.__dict__["_given_weights"] = weights

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if "_given_weights" in self.__dict__ and name in self._flat_weights_names:
            del self.__dict__["_given_weights"]

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Any:
        self.__dict__.pop("_given_weights", None)
        return super()._apply(fn, recurse)

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """No effect: it compacts memory on CUDA only."""

    def reset_parameters(self) -> None:
        """Reinitialise all parameters."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def check_input(self, input: Any, batch_sizes: Any) -> None:
        """Raise for an input of another dtype, rank or number of features."""
        expected = self._flat_weights[0].dtype
        if input.dtype != expected and casting.current() is None:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({expected}). Convert input: "
                f"input.to({expected}), or convert model: model.to({input.dtype})"
            )
        rank = 3 if batch_sizes is None else 2
        if input.dim() != rank:
            raise RuntimeError(f"input must have {rank} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def _expected_size(self, input: Any, batch_sizes: Any, width: int) -> tuple[int, int, int]:
        n = int(batch_sizes[0]) if batch_sizes is not None else input.size(0 if self.batch_first else 1)
        return self.num_layers * self._directions, n, width

    def get_expected_hidden_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        """Shape of the initial h for an input."""
        return self._expected_size(input, batch_sizes, self.proj_size or self.hidden_size)

    def get_expected_cell_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        """Shape of the initial c of an LSTM for an input."""
        return self._expected_size(input, batch_sizes, self.hidden_size)

    def check_hidden_size(
        self, hx: Any, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Raise RuntimeError for an initial state of another shape."""
        if tuple(hx.size()) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        """Raise for an input or initial state of a wrong shape or dtype."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        """States permuted along the batch dimension; unchanged for None."""
        return hx if permutation is None else hx.index_select(1, permutation)

    def _check_states_rank(self, states: tuple[Any, ...], rank: int) -> None:
        if any(s.dim() != rank for s in states):
            kind = "unbatched" if rank == 2 else "batched"
            raise RuntimeError(f"For {kind} {rank}-D input, hx should also be {rank}-D but got {states[0].dim()}-D tensor")

    def _zero_states(self, input: Any, batch_sizes: Any) -> tuple[Any, ...]:
        return (create.zeros(*self.get_expected_hidden_size(input, batch_sizes), dtype=input.dtype, device=input.device),)

    def _states_of(self, hx: Any) -> tuple[Any, ...]:
        return (hx,)

    def _result(self, output: Any, states: list[Any]) -> tuple[Any, Any]:
        return output, states[0]

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """(outputs of the last layer, final states) of a sequence (T, features), a batch of them, or a PackedSequence.

        Args:
            input: (T, features), (T, B, features), with batch_first (B, T, features), or packed: so are the outputs.
            hx: initial states, (num_layers * directions, B, hidden_size) or without B; zeros by default.

        Raises:
            RuntimeError, ValueError: for shapes or dtypes that do not match.
        """
        batch_sizes = order = back = None
        batched = True
        if isinstance(input, PackedSequence):
            input, batch_sizes, order, back = input
        elif input.dim() not in (2, 3):
            raise ValueError(self._bad_rank.format(type(self).__name__, input.dim()))
        elif not (batched := input.dim() == 3):
            input = input.unsqueeze(0 if self.batch_first else 1)
        if hx is None:
            states = self._zero_states(input, batch_sizes)
        else:
            states = self._states_of(hx)
            if batch_sizes is None:
                self._check_states_rank(states, 3 if batched else 2)
            states = states if batched else tuple([s.unsqueeze(1) for s in states])
        self.check_forward_args(input, self._result(None, list(states))[1], batch_sizes)
        if hx is not None:
            states = tuple([self.permute_hidden(s, order) for s in states])
        layers = getattr(self, f"_{self.mode}")
        given = states if self.mode == "LSTM" else states[0]
        rest = (given, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        if batch_sizes is not None:
            rows, *finals = layers(input, batch_sizes, *rest)
            packed = PackedSequence(rows, batch_sizes, order, back)
            return self._result(packed, [self.permute_hidden(s, back) for s in finals])
        output, *finals = layers(input, *rest, self.batch_first)
        if not batched:
            output = output.squeeze(0 if self.batch_first else 1)
            finals = [s.squeeze(1) for s in finals]
        return self._result(output, finals)

    def extra_repr(self) -> str:
        defaults = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0,
            "bidirectional": False,
        }
        options = [name for name, default in defaults.items() if getattr(self, name) != default]
        return ", ".join([f"{self.input_size}, {self.hidden_size}"] + [shown(self, name) for name in options])


def _no_projection(kwargs: dict[str, Any]) -> None:
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNBase):
    """Recurrent layers h' = tanh(W_ih x + b_ih + W_hh h + b_hh) (Elman 1990); further arguments as RNNBase.

    Args:
        nonlinearity: "tanh" or "relu"; the fourth positional argument.

    Example:
        >>> outputs, h = tg.nn.RNN(3, 4, bidirectional=True)(tg.zeros(5, 2, 3))
        >>> outputs.shape, h.shape
        (torch.Size([5, 2, 8]), torch.Size([2, 2, 4]))
    """

    _bad_rank = "{}: Expected input to be 2D or 3D, got {}D tensor instead"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _no_projection(kwargs)
        if len(args) > 3:
            self.nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            self.nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if self.nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{self.nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{self.nonlinearity.upper()}", *args, **kwargs)

    if TYPE_CHECKING:

        @overload
        def __call__(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]: ...
        @overload
        def __call__(self, input: PackedSequence, hx: Tensor | None = None) -> tuple[PackedSequence, Tensor]: ...
        def __call__(self, input: Any, hx: Any = None) -> Any: ...


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber 1997, with forget gates; projections: Sak et al. 2014).

    i, f, o = sigmoid(W_i x + b_i + U_i h + c_i), ..; g = tanh(W_g x + ..); c' = f c + i g; h' = o tanh(c').
    Arguments as RNNBase; states are pairs (h, c).

    Example:
        >>> outputs, (h, c) = tg.nn.LSTM(3, 4, num_layers=2)(tg.zeros(5, 2, 3))
        >>> outputs.shape, h.shape, c.shape
        (torch.Size([5, 2, 4]), torch.Size([2, 2, 4]), torch.Size([2, 2, 4]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    if TYPE_CHECKING:

        @overload
        def __call__(
            self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
        ) -> tuple[Tensor, tuple[Tensor, Tensor]]: ...
        @overload
        def __call__(
            self, input: PackedSequence, hx: tuple[Tensor, Tensor] | None = None
        ) -> tuple[PackedSequence, tuple[Tensor, Tensor]]: ...
        def __call__(self, input: Any, hx: Any = None) -> Any: ...

    def _zero_states(self, input: Any, batch_sizes: Any) -> tuple[Any, ...]:
        sizes = self.get_expected_hidden_size(input, batch_sizes), self.get_expected_cell_size(input, batch_sizes)
        return tuple([create.zeros(*size, dtype=input.dtype, device=input.device) for size in sizes])

    def _states_of(self, hx: Any) -> tuple[Any, ...]:
        return hx[0], hx[1]

    def _result(self, output: Any, states: list[Any]) -> tuple[Any, Any]:
        return output, tuple(states)

    def _check_states_rank(self, states: tuple[Any, ...], rank: int) -> None:
        h, c = states
        if h.dim() != rank or c.dim() != rank:
            kind = "unbatched" if rank == 2 else "batched"
            raise RuntimeError(
                f"For {kind} {rank}-D input, hx and cx should also be {rank}-D but got ({h.dim()}-D, {c.dim()}-D) tensors"
            )

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        """Raise for an input or initial states of a wrong shape or dtype."""
        self.check_input(input, batch_sizes)
        expected = self.get_expected_hidden_size(input, batch_sizes), self.get_expected_cell_size(input, batch_sizes)
        for i, (state, size) in enumerate(zip(hidden, expected, strict=True)):
            self.check_hidden_size(state, size, f"Expected hidden[{i}] size {{}}, got {{}}")

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        """The state, or the pair of states, permuted along the batch dimension."""
        if isinstance(hx, Tensor):
            return super().permute_hidden(hx, permutation)
        return tuple([super(LSTM, self).permute_hidden(s, permutation) for s in hx])


class GRU(RNNBase):
    """Gated recurrent units (Cho et al. 2014), with the reset gate after the product.

    r, z = sigmoid(W_r x + b_r + U_r h + c_r), ..; n = tanh(W_n x + b_n + r (U_n h + c_n)); h' = (1 - z) n + z h.
    Arguments as RNNBase.

    Example:
        >>> outputs, h = tg.nn.GRU(3, 4, batch_first=True)(tg.zeros(2, 5, 3))
        >>> outputs.shape, h.shape
        (torch.Size([2, 5, 4]), torch.Size([1, 2, 4]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _no_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)

    if TYPE_CHECKING:

        @overload
        def __call__(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]: ...
        @overload
        def __call__(self, input: PackedSequence, hx: Tensor | None = None) -> tuple[PackedSequence, Tensor]: ...
        def __call__(self, input: Any, hx: Any = None) -> Any: ...


# ---------------------------------------------------------------------------------------------------------------- cells


class RNNCellBase(Module):
    """Base of the recurrent cells: one step of a layer.

    Args:
        input_size: features of the input.
        hidden_size: features of the state.
        bias: whether there are biases.
        num_chunks: number of gates.

    Attributes:
        weight_ih, weight_hh, bias_ih, bias_hh: as in the layer.
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        gates = num_chunks * hidden_size
        for name, size in (("weight_ih", (gates, input_size)), ("weight_hh", (gates, hidden_size))):
            setattr(self, name, Parameter(create.empty(*size, dtype=dtype, device=device)))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(create.empty(gates, dtype=dtype, device=device)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialise all parameters."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0.0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _step(self, function: Any, input: Any, states: Any, count: int) -> list[Tensor]:
        """The states after one step, with a batch dimension if the input has one."""
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        for i, s in enumerate(() if states is None else states):
            if s.dim() not in (1, 2):
                what = "hidden" if count == 1 else f"hx[{i}]"
                raise ValueError(f"{name}: Expected {what} to be 1D or 2D, got {s.dim()}D instead")
        batched = input.dim() == 2
        x = input if batched else input.unsqueeze(0)
        if states is None:
            given = [create.zeros(x.size(0), self.hidden_size, dtype=x.dtype, device=x.device)] * count
        else:
            given = [s if batched else s.unsqueeze(0) for s in states]
        hx = given[0] if count == 1 else given
        out = function(x, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        found = [out] if count == 1 else list(out)
        return found if batched else [s.squeeze(0) for s in found]

    def extra_repr(self) -> str:
        options = [] if self.bias else [shown(self, "bias")]
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            options.append(f"nonlinearity={self.nonlinearity}")
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *options])


class RNNCell(RNNCellBase):
    """One step of an RNN layer, h' = tanh(W_ih x + b_ih + W_hh h + b_hh) or relu(...); arguments as RNNCellBase.

    Example:
        >>> tg.nn.RNNCell(3, 4)(tg.zeros(2, 3)).shape
        torch.Size([2, 4])
    """

    _tanh, _relu = staticmethod(recurrent.rnn_tanh_cell), staticmethod(recurrent.rnn_relu_cell)

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """(B, features) and a state (B, hidden_size), or both without B, to the next state; zeros by default.

        Raises:
            RuntimeError, ValueError: for shapes that do not match, or an unknown nonlinearity.
        """
        function = {"tanh": self._tanh, "relu": self._relu}.get(self.nonlinearity)
        if function is None:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(function, input, None if hx is None else (hx,), 1)[0]


class LSTMCell(RNNCellBase):
    """One step of an LSTM layer; arguments as RNNCellBase.

    Example:
        >>> h, c = tg.nn.LSTMCell(3, 4)(tg.zeros(2, 3))
        >>> h.shape, c.shape
        (torch.Size([2, 4]), torch.Size([2, 4]))
    """

    _cell = staticmethod(recurrent.lstm_cell)

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """(B, features) and states (h, c) of (B, hidden_size), or all without B, to the next ones; zeros by default.

        Raises:
            RuntimeError, ValueError: for shapes that do not match.
        """
        h, c = self._step(self._cell, input, hx, 2)
        return h, c


class GRUCell(RNNCellBase):
    """One step of a GRU layer; arguments as RNNCellBase.

    Example:
        >>> tg.nn.GRUCell(3, 4)(tg.zeros(2, 3)).shape
        torch.Size([2, 4])
    """

    _cell = staticmethod(recurrent.gru_cell)

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """(B, features) and a state (B, hidden_size), or both without B, to the next state; zeros by default.

        Raises:
            RuntimeError, ValueError: for shapes that do not match.
        """
        return self._step(self._cell, input, None if hx is None else (hx,), 1)[0]
