"""torch.utils.data._utils.worker: tapegrad's worker processes, and how a worker's seed for NumPy is found."""

import numpy as _np


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """PyTorch's seed for NumPy in a worker: four words."""
    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return [int(word) for word in _np.random.SeedSequence(words).generate_state(4)]
