"""What type checkers, editors and `dir` see of the package."""

import importlib
import pathlib
import subprocess
import sys
import types

import pytest

import tapegrad as tg

HERE = pathlib.Path(__file__).parent
PROGRAM = HERE / "typed_program.py"
MODULES = """
amp autograd autograd.forward_ad autograd.function autograd.functional autograd.graph cuda custom distributions examples fft
func linalg masked nn nn.functional nn.init nn.parameter nn.utils numpy optim optim.lr_scheduler optim.swa_utils overrides
random serialization sparse special testing utils utils.data viz
"""


def checked(*command):
    done = subprocess.run([*command, str(PROGRAM)], capture_output=True, text=True, cwd=HERE.parent)
    assert done.returncode == 0, done.stdout + done.stderr


def test_typed_program_with_mypy():
    pytest.importorskip("mypy")
    checked(sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent")


@pytest.mark.exhaustive
def test_typed_program_runs():
    pytest.importorskip("jax")
    checked(sys.executable)


def test_modes_decorate_with_and_without_parentheses():
    def recorded():
        return tg.is_grad_enabled()

    for mode in (tg.no_grad, tg.inference_mode):
        assert mode(recorded)() is mode()(recorded)() is False
    with tg.no_grad():
        assert tg.enable_grad(recorded)() is tg.enable_grad()(recorded)() is True
    assert tg.inference_mode(tg.is_inference_mode_enabled)() is True


@pytest.mark.parametrize("name", MODULES.split())
def test_dir_of_a_module_is_its_public_names(name):
    module = importlib.import_module(f"tapegrad.{name}")
    shown = dir(module)
    assert shown and not [n for n in shown if n.startswith("_") or not hasattr(module, n)]
    assert set(shown) == {n for n in getattr(module, "__all__", shown) if not n.startswith("_")}


def test_dir_of_the_package_leaves_out_internals():
    shown = dir(tg)
    assert [n for n in shown if n.startswith("_")] == ["__version__"]
    modules = {n for n in shown if isinstance(getattr(tg, n), types.ModuleType)}
    assert modules == {n for n in MODULES.split() if "." not in n} | {"compat"}
    assert not {"annotations", "core", "ops", "errors"} & set(shown)
