"""Compiled programs on more than one device: eight simulated ones in one process, and two processes."""

import os
import pathlib
import socket
import subprocess
import sys

import pytest

import tapegrad as tg

pytest.importorskip("jax")
HERE = pathlib.Path(__file__).parent
MULTI_HOST = HERE.parent / "docs" / "examples" / "multi_host.py"


def environment(devices):
    """That of a process with so many devices on the CPU, and one thread for each."""
    flags = f"--xla_force_host_platform_device_count={devices}"
    path = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    return os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": path}


@pytest.mark.parametrize(
    "program",
    ["data_parallel", "sharded_parameter", "everything_else", "results_and_other_programs", "on_the_outer_tape", "errors"],
)
def test_eight_devices(program):
    command = [sys.executable, HERE / "mesh_program.py", program]
    done = subprocess.run(command, env=environment(8), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_two_processes_train_as_one(tmp_path):
    """docs/examples/multi_host.py, alone on one device and in two processes with two devices each."""
    alone, together = tmp_path / "alone.pt", tmp_path / "together.pt"
    command = [sys.executable, MULTI_HOST, "--steps", "20", "--out"]
    runs = [subprocess.Popen([*command, alone], env=environment(1), stderr=subprocess.PIPE, text=True)]
    several = [*command, together, "--coordinator", f"127.0.0.1:{free_port()}", "--processes", "2", "--number"]
    for number in "01":
        runs.append(subprocess.Popen([*several, number], env=environment(2), stderr=subprocess.PIPE, text=True))
    try:
        for run in runs:
            _, said = run.communicate(timeout=100)
            assert run.returncode == 0, said
    finally:
        for run in runs:
            run.kill()
            run.wait()
            run.stderr.close()
    one, two = tg.load(alone), tg.load(together)
    assert max((one[k] - two[k]).abs().max().item() for k in one) < 1e-6
