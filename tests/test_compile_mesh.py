"""Compiled programs on more than one device: eight simulated ones in one process, and two processes."""

import json
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


PROGRAMS = [
    "data_parallel",
    "sharded_parameter",
    "everything_else",
    "other_programs",
    "on_the_outer_tape",
    "device_tensors",
    "errors",
]


@pytest.fixture(scope="module")
def raised():
    command = [sys.executable, HERE / "mesh_program.py", *PROGRAMS]
    done = subprocess.run(command, env=environment(8), capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.exhaustive
@pytest.mark.parametrize("program", PROGRAMS)
def test_eight_devices(program, raised):
    assert program not in raised, raised[program]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run_all(commands):
    """Run commands at the same time, on two devices each; what they print."""
    pipe = subprocess.PIPE
    runs = [subprocess.Popen(c, env=environment(2), stdout=pipe, stderr=pipe, text=True) for c in commands]
    try:
        printed = [run.communicate(timeout=100) for run in runs]
    finally:
        for run in runs:
            run.kill()
            run.communicate()
    for run, (_, said) in zip(runs, printed, strict=True):
        assert run.returncode == 0, said
    return [out for out, _ in printed]


@pytest.mark.exhaustive
def test_two_processes():
    address = f"127.0.0.1:{free_port()}"
    command = [sys.executable, HERE / "mesh_program.py"]
    for out in run_all([[*command, f"{address}/{number}", "hosts"] for number in "01"]):
        raised = json.loads(out.splitlines()[-1])
        assert "hosts" not in raised, raised["hosts"]


@pytest.mark.exhaustive
def test_two_processes_train_as_one(tmp_path):
    """docs/examples/multi_host.py, in one process and in two, with two devices each."""
    alone, together = tmp_path / "alone.pt", tmp_path / "together.pt"
    command = [sys.executable, MULTI_HOST, "--steps", "20", "--out"]
    several = [*command, together, "--coordinator", f"127.0.0.1:{free_port()}", "--processes", "2", "--number"]
    run_all([[*command, alone], [*several, "0"], [*several, "1"]])
    one, two = tg.load(alone), tg.load(together)
    assert max((one[k] - two[k]).abs().max().item() for k in one) < 1e-6
