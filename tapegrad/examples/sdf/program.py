"""Fit a network to the signed distance of a triangle mesh, from points, normals and winding numbers.

Writes a picture, and prints how well the fit agrees with the mesh on points that were not used in training.

    python -m tapegrad.examples.sdf                                   # a trefoil knot
    python -m tapegrad.examples.sdf bunny.ply --mesh out.ply --save bunny.safetensors
    python -m tapegrad.examples.sdf --load bunny.safetensors --picture bunny.png --curvature
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import trimesh

import tapegrad as tg

from . import curvature, field, fit, picture, report, samples, shape

# What a file's name may end in, by the option that names it.
ENDINGS = {"save": "safetensors", "mesh": "ply obj stl off glb", "picture": "png jpg pdf svg webp"}


def options(arguments: list[str] | None) -> argparse.Namespace:
    text, _, examples = (__doc__ or "").partition("\n\n    ")
    parser = argparse.ArgumentParser(
        prog="python -m tapegrad.examples.sdf", description=text, epilog="examples:\n    " + examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    add(
        "shape",
        nargs="?",
        type=Path,
        metavar="MESH",
        help="a mesh in any format that trimesh reads (default a trefoil knot)",
    )
    add("--steps", type=int, help="training steps (default 1000 to 5500, by the frequency; 0 with --load)")
    add("--width", type=int, default=128, help="units of each hidden layer (default %(default)s)")
    add("--frequency", type=float, help="of the sines; higher for finer detail (default by the thickness of the shape)")
    add("--seed", type=int, default=0, help="of all random numbers (default %(default)s)")
    add("--device", default="cpu", help="where to train: cpu, or cuda with JAX (default %(default)s)")
    add("--compile", action=argparse.BooleanOptionalAction, help="compile the training step (default where JAX is there)")
    add("--save", type=Path, metavar="FILE", help="write the network, as .safetensors")
    add(
        "--load",
        type=Path,
        metavar="FILE",
        help="begin with the network of such a file; without MESH only draw and write it",
    )
    add("--mesh", type=Path, metavar="FILE", help=f"write the fitted surface ({ENDINGS['mesh']})")
    add("--picture", type=Path, metavar="FILE", help=f"draw the fitted surface ({ENDINGS['picture']}; default sdf.png)")
    add("--resolution", type=int, default=560, help="pixels a side of the render (default %(default)s)")
    add(
        "--up",
        choices="xyz",
        help="the axis that points up in the picture (default the one along which the shape is flattest)",
    )
    add("--curvature", action="store_true", help="mean and Gaussian curvature, in the picture and in the file of --mesh")
    chosen = parser.parse_args(arguments)
    if chosen.steps is None and chosen.load:
        chosen.steps = 0
    chosen.picture = chosen.picture or Path("sdf.png")
    check(parser, chosen)
    return chosen


def check(parser: argparse.ArgumentParser, chosen: argparse.Namespace) -> None:
    """Refuse before the training whatever can be known to fail after it."""
    for name, least in (("steps", 0), ("width", 1), ("resolution", 16)):
        if getattr(chosen, name) is not None and getattr(chosen, name) < least:
            parser.error(f"--{name} must be at least {least}")
    if chosen.frequency is not None and not 0 < chosen.frequency < math.inf:
        parser.error("--frequency must be above 0")
    for name, endings in ENDINGS.items():
        path = getattr(chosen, name)
        if path is None:
            continue
        if path.suffix.lower().lstrip(".") not in endings.split():
            parser.error(f"--{name} {path}: the name must end in .{' or .'.join(endings.split())}")
        if not path.resolve().parent.is_dir():
            parser.error(f"--{name} {path}: there is no folder {path.resolve().parent}")
    if chosen.compile and not fit.jax_is_there():
        parser.error("--compile needs JAX: pip install 'tapegrad[jax]'")
    if chosen.load and not chosen.shape and chosen.steps:
        parser.error("--steps with --load needs a MESH to train on")
    try:
        tg.zeros(1, device=chosen.device)
    except (RuntimeError, ImportError, AssertionError) as e:
        parser.error(f"--device {chosen.device}: {' '.join(str(e).split())}")


class Clock:
    """Prints lines with the seconds since the start."""

    def __init__(self) -> None:
        self.start = time.perf_counter()

    def say(self, text: str) -> None:
        print(f"{time.perf_counter() - self.start:6.1f} s  {text}", flush=True)


def run(chosen: argparse.Namespace) -> None:
    clock = Clock()
    tg.manual_seed(chosen.seed)
    rng = np.random.default_rng(chosen.seed)
    loaded = fit.load(chosen.load) if chosen.load else None
    solid = None
    if loaded is None or chosen.shape:
        solid = solid_of(chosen, loaded and loaded[1], clock)
        loaded = trained(chosen, loaded and loaded[0], solid, rng, clock), solid.mesh.frame
    model, frame = loaded
    if chosen.save:
        fit.save(chosen.save, model, frame)
        clock.say(f"wrote {chosen.save}")
    surface = report.extracted(model)
    if solid is not None:
        print(report.measured(model, solid, surface, rng), flush=True)
    if len(surface.faces):
        write(chosen, model, surface, frame, clock)
    else:
        print("warning: the network is 0 nowhere: there is no surface to draw or to write", file=sys.stderr)


def solid_of(chosen: argparse.Namespace, frame: dict[str, Any] | None, clock: Clock) -> shape.Solid:
    mesh = shape.load(chosen.shape)
    for warning in mesh.warnings:
        print(f"warning: {mesh.name}: {warning}", file=sys.stderr)
    if frame is not None and not same_frame(frame, mesh.frame):
        raise shape.Unusable(f"{mesh.name}: {chosen.load} was fitted to a mesh of another place or size")
    solid = shape.Solid(mesh)
    clock.say(f"{mesh.name}: {len(mesh.faces):,} faces")
    return solid


def same_frame(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return bool(np.allclose(a["scale"], b["scale"], 1e-5) and np.allclose(a["centre"], b["centre"], 1e-5, 1e-5 / b["scale"]))


def trained(
    chosen: argparse.Namespace, model: field.DistanceField | None, solid: shape.Solid, rng: np.random.Generator, clock: Clock
) -> field.DistanceField:
    """The network, a new one unless one was loaded, after the steps of training."""
    drawn = samples.draw(solid, rng)
    if model is None:
        model = field.DistanceField(chosen.width, chosen.frequency or fit.frequency_for(drawn.detail))
        clock.say(f"thin parts are {drawn.detail / report.SIZE:.1%} of its length thick: frequency {model.frequency:.0f}")
    steps = fit.steps_for(model.frequency) if chosen.steps is None else chosen.steps
    if steps:
        model = model.to(chosen.device)
        compiled = fit.pays(steps) if chosen.compile is None else chosen.compile
        done = fit.train(model, drawn, steps, chosen.seed, compiled, chosen.device)
        clock.say(f"trained {done} steps" if done == steps else f"stopped after {done} of {steps} steps")
    return model


def write(
    chosen: argparse.Namespace, model: field.DistanceField, surface: report.Surface, frame: dict[str, Any], clock: Clock
) -> None:
    """The files of --mesh and --picture."""
    curvatures = curvature.of_surface(model, surface.vertices) if chosen.curvature else {}
    if chosen.mesh:
        vertices = field.on_surface(model, surface.vertices)
        attributes = curvature.attributes(model, vertices, curvatures) if curvatures else {}
        trimesh.Trimesh(
            vertices / frame["scale"] + np.asarray(frame["centre"]), surface.faces, process=False,
            vertex_normals=shape.unit(field.gradients(model, vertices)), **attributes,
        ).export(chosen.mesh)  # fmt: skip
        clock.say(f"wrote {chosen.mesh}: {len(vertices):,} vertices, {len(surface.faces):,} faces")
    up = None if chosen.up is None else "xyz".index(chosen.up)
    picture.save_picture(chosen.picture, model, surface, up, chosen.resolution, curvatures)
    clock.say(f"wrote {chosen.picture}")


def main(arguments: list[str] | None = None) -> int:
    """Run the program; returns its exit status."""
    chosen = options(arguments)
    try:
        run(chosen)
    except (shape.Unusable, fit.NotAModel) as e:
        print(e, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    return 0
