"""torch.quasirandom: Sobol sequences. The direction numbers, Joe's and Kuo's of 2008, are SciPy's."""

import numpy as np

import torch


class SobolEngine:
    """Sobol points in the unit cube, in the order of Gray code; scrambled by random triangular matrices and a shift."""

    MAXBIT, MAXDIM = 30, 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None):
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        try:
            from scipy.stats import qmc
        except ImportError as e:
            raise ImportError("SobolEngine needs SciPy for its direction numbers: pip install scipy") from e
        self.dimension, self.scramble, self.seed, self.num_generated = dimension, scramble, seed, 0
        self._directions = qmc.Sobol(dimension, scramble=False, bits=self.MAXBIT)._sv.astype(np.int64)
        self.shift = torch.zeros(dimension, dtype=torch.int64)
        if scramble:
            self._scramble()
        self._first = self.shift / 2**self.MAXBIT

    @property
    def sobolstate(self) -> torch.Tensor:
        """The direction numbers."""
        return torch.from_numpy(self._directions)

    def _scramble(self) -> None:
        bits = self.MAXBIT
        g = None if self.seed is None else torch.Generator().manual_seed(self.seed)
        self.shift = (torch.randint(2, (self.dimension, bits), generator=g) << torch.arange(bits)).sum(1)
        matrices = torch.randint(2, (self.dimension, bits, bits), generator=g).tril(-1).numpy() + np.eye(
            bits, dtype=np.int64
        )
        places = np.arange(bits)
        rows = matrices @ (1 << places[::-1])  # each row of a matrix as a number
        common = rows[:, :, None] & self._directions[:, None, :]
        odd = (common[..., None] >> places & 1).sum(-1) & 1
        self._directions = (odd << places[::-1, None]).sum(1)

    def draw(self, n: int = 1, out: object = None, dtype: object = None) -> torch.Tensor:
        """The next n points, (n, dimension)."""
        dtype = torch.get_default_dtype() if dtype is None else dtype
        places = np.arange(self.num_generated, self.num_generated + n)
        points = np.repeat(self.shift.numpy()[None], n, 0)
        for bit in range(self.MAXBIT):
            points[(places ^ places >> 1) >> bit & 1 == 1] ^= self._directions[:, bit]
        result = torch.from_numpy(points).to(dtype) / 2**self.MAXBIT
        if self.num_generated == 0 and n:
            result[0] = self._first
        self.num_generated += n
        return result if out is None else out.resize_as_(result).copy_(result)

    def draw_base2(self, m: int, out: object = None, dtype: object = None) -> torch.Tensor:
        """The next ``2**m`` points; their number in all is to be a power of 2."""
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: n={self.num_generated}+2**{m}={total}. "
                "If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(2**m, out, dtype)

    def reset(self) -> "SobolEngine":
        """Begin with the first point again."""
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> "SobolEngine":
        """Leave out the next n points."""
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        scramble = ", scramble=True" if self.scramble else ""
        seed = "" if self.seed is None else f", seed={self.seed}"
        return f"{type(self).__name__}(dimension={self.dimension}{scramble}{seed})"
