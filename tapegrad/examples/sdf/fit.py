"""The loss, the training loop, and files of fitted networks."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

import tapegrad as tg
from tapegrad import Tensor, nn

from .field import DistanceField, value_and_gradient
from .samples import Samples

Array = npt.NDArray[Any]

BATCH = (1024, 1024, 512)  # points of a step on the surface, near it, and anywhere in the box
FORMAT = "tapegrad.examples.sdf 1"


class NotAModel(Exception):
    """A file that holds no network of this program; the text names the file and the reason."""


def loss_of(model: nn.Module, batch: Tensor) -> tuple[Tensor, Tensor]:
    """The loss of a batch (sum(BATCH), 7), whose rows are point, distance and gradient, and its eikonal error."""
    points, distance, direction = batch[:, :3], batch[:, 3:4], batch[:, 4:]
    # create_graph=True: the gradient is itself part of the graph, so that backward() can go through it.
    f, gradient = value_and_gradient(model, points, create_graph=True)
    on_surface, near, box = (f - distance).abs().split(list(BATCH))
    eikonal = (gradient.norm(dim=1) - 1).square().mean()  # a distance grows by 1 per unit of length
    off = ((gradient - direction).square().sum(dim=1) + 1e-12).sqrt()
    normal, around = off[: BATCH[0]].mean(), off[BATCH[0] :].mean()
    value = on_surface.mean() + near.mean() + 0.3 * box.mean()
    return 30 * value + 2.5 * normal + 0.3 * around + 0.1 * eikonal, eikonal


def learning_rate(step: int, steps: int, highest: float) -> float:
    """It rises over the first hundred steps and falls along half a cosine."""
    return highest * min(1, (step + 1) / 100) * (0.5 + 0.5 * math.cos(math.pi * step / steps))


def train(
    model: nn.Module, samples: Samples, steps: int, seed: int = 0, compiled: bool = False, device: str = "cpu",
    highest_rate: float = 2e-3,
) -> int:  # fmt: skip
    """Fit the network; Ctrl-C ends the fit with what is learnt by then. Returns the number of steps made."""
    rng = np.random.default_rng(seed)
    optimizer = tg.optim.Adam(model.parameters(), lr=highest_rate)
    kinds = list(zip((samples.surface, samples.near, samples.box), BATCH, strict=True))

    def step(batch: Tensor) -> tuple[Tensor, Tensor]:
        loss, eikonal = loss_of(model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach(), eikonal.detach()

    run = tg.compile(step) if compiled else step
    done = 0
    with tqdm(range(steps), desc="training", unit="step", mininterval=0.5) as progress:
        try:
            for done in progress:
                for group in optimizer.param_groups:
                    group["lr"] = learning_rate(done, steps, highest_rate)
                batch = np.concatenate([rows[rng.integers(0, len(rows), n)] for rows, n in kinds])
                loss, eikonal = run(tg.from_numpy(batch).to(device))
                if done % 20 == 0 or done == steps - 1:
                    progress.set_postfix(
                        loss=f"{loss.item():.4f}", eikonal=f"{math.sqrt(eikonal.item()):.4f}", refresh=False
                    )
            return steps
        except KeyboardInterrupt:
            return done


def jax_is_there() -> bool:
    return importlib.util.find_spec("jax") is not None


def save(path: Path, model: DistanceField, frame: dict[str, Any]) -> None:
    """Write the weights as .safetensors, with what is needed to rebuild the network, and `frame`, in the metadata."""
    from safetensors.numpy import save_file

    settings = {"width": model.width, "frequency": model.frequency, "hidden_layers": model.hidden_layers}
    metadata = {"format": FORMAT, "network": json.dumps(settings), "frame": json.dumps(frame)}
    save_file({n: np.ascontiguousarray(p.detach().cpu().numpy()) for n, p in model.state_dict().items()}, path, metadata)


def load(path: Path) -> tuple[DistanceField, dict[str, Any]]:
    """The network of a file of `save`, and its frame.

    Raises:
        NotAModel: for a file that cannot be read or that another program wrote.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != FORMAT:
                raise NotAModel(f"{path}: no network of this program ({FORMAT!r} is not its format)")
            model = DistanceField(**json.loads(metadata["network"]))
            model.load_state_dict({name: tg.from_numpy(file.get_tensor(name)) for name in file.keys()})  # noqa: SIM118
            return model, json.loads(metadata["frame"])
    except (OSError, SafetensorError, KeyError, ValueError, TypeError, RuntimeError) as e:
        reason = " ".join(str(e).split()) or type(e).__name__
        raise NotAModel(f"{path}: cannot be read as a network ({reason[:200]})") from e


def pays(steps: int) -> bool:
    """Whether compiling the step takes less time than it saves: with JAX there, and for more than a few steps."""
    return jax_is_there() and steps >= 1000


def steps_for(frequency: float) -> int:
    """How long a network of a frequency is trained."""
    return int(1000 + max(0, 100 * (frequency - 15)))


def frequency_for(detail: float) -> float:
    """The frequency of the sines for a shape whose thin parts are `detail` thick."""
    return float(np.clip(0.9 / detail, 15, 60))
