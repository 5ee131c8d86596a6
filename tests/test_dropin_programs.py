"""The tutorials' programs and OneFlow programs, run as `python -m tapegrad --as <library> program.py <library>`."""

import pathlib

import programs
import pytest

ROOT = pathlib.Path(__file__).parent.parent
PROGRAMS = ROOT / "compat" / "programs"  # not there where the tests of an installed wheel run
CASES = [(p.name.split(".")[0], p.name.split(".")[1]) for p in sorted(PROGRAMS.glob("*.*.txt"))]

pytestmark = pytest.mark.skipif(not PROGRAMS.is_dir(), reason="needs compat/programs of the source tree")


def test_each_tutorial_has_a_program_for_each_library():
    seeds = {"seed_oneflow", "seed_pytorch", "seed_notes"}
    assert {(seed, library) for seed in seeds for library in ("torch", "oneflow")} <= set(CASES)


@pytest.mark.every(2)
@pytest.mark.parametrize("program,library", CASES, ids=["-".join(case) for case in CASES])
def test_prints_the_expected_output(program, library, tmp_path):
    wanted = (PROGRAMS / f"{program}.{library}.txt").read_text()
    command = ["-m", "tapegrad", "--as", library, str(PROGRAMS / f"{program}.py"), library]
    assert programs.difference(programs.output(command, tmp_path, ROOT), wanted) is None
