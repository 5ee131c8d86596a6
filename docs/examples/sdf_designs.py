"""Three networks for a signed distance function, trained on the same samples: what `tapegrad.examples.sdf` chose between.

    python docs/examples/sdf_designs.py ant.ply --steps 1500

It needs the extra `examples` and prints a row for each design: angle errors, connected surfaces, CPU time.
"""

import argparse
import math
import time
from pathlib import Path

import numpy as np

import tapegrad as tg
from tapegrad.examples.sdf import field, fit, report, samples, shape


class Softplus(tg.nn.Module):
    """Layers of softplus with geometric initialisation: f starts near the distance from a sphere (Atzmon, Lipman 2020)."""

    def __init__(self, width, frequency, n_in=3):
        super().__init__()
        self.frequency = frequency
        layers = []
        for n in (n_in, width, width):
            layer = tg.nn.Linear(n, width)
            with tg.no_grad():
                layer.weight.copy_(tg.randn(width, n) * math.sqrt(2 / width))
                layer.bias.zero_()
            layers += [layer, tg.nn.Softplus(beta=100)]
        last = tg.nn.Linear(width, 1)
        with tg.no_grad():
            last.weight.copy_(math.sqrt(math.pi / width) + 1e-5 * tg.randn(1, width))
            last.bias.fill_(-0.5)
        self.net = tg.nn.Sequential(*layers, last)

    def forward(self, x):
        return self.net(x)


class Fourier(Softplus):
    """The same, which is also given sines and cosines of random directions (Tancik et al., 2020)."""

    def __init__(self, width, frequency):
        super().__init__(width, frequency, width + 3)
        self.register_buffer("directions", tg.randn(3, width // 2) * frequency / 4)
        with tg.no_grad():
            self.net[0].weight[:, 3:] *= 0.3

    def forward(self, x):
        phases = x @ self.directions
        return self.net(tg.cat([x, phases.sin(), phases.cos()], dim=1))


DESIGNS = {"softplus": Softplus, "Fourier": Fourier, "sines": field.DistanceField}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mesh", nargs="?", type=Path)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--width", type=int, default=128)
    args = parser.parse_args()
    solid = shape.Solid(shape.load(args.mesh))
    drawn = samples.draw(solid, np.random.default_rng(0))
    print("design    all points        away from creases  connected surfaces  CPU seconds")
    for name, design in DESIGNS.items():
        tg.manual_seed(0)
        model = design(args.width, fit.frequency_for(drawn.detail))
        start = time.process_time()
        fit.train(model, drawn, args.steps)
        seconds = time.process_time() - start
        found = report.measured(model, solid, report.extracted(model), np.random.default_rng(1))
        angles = [f"{a[0]:5.2f}, 95 %: {a[2]:5.2f}" for a in (found.angles, found.angles_away)]
        print(f"{name:9} {angles[0]}  {angles[1]}   {found.components} (mesh: {found.parts}){seconds:18.0f}", flush=True)


if __name__ == "__main__":
    main()
