"""compat/upstream.py on a test file of its own: what passes on both, what fails on the drop-in alone, what is outside."""

import subprocess
import sys
import textwrap
from pathlib import Path

RUNNER = Path(__file__).with_name("upstream.py")
FILE = """
    import unittest
    import torch
    from torch.testing._internal.common_utils import TestCase, TEST_CUDA, no_such_helper, parametrize, run_tests
    from torch.testing._internal.common_utils import instantiate_parametrized_tests
    from torch.testing._internal.common_device_type import dtypes, instantiate_device_type_tests, onlyCUDA
    from torch._C import nothing_of_this_name

    class TestValues(TestCase):
        @parametrize("n", [1, 2])
        def test_sum(self, n):
            self.assertEqual(torch.ones(n).sum(), n)

        def test_version(self):
            self.assertNotIn("tapegrad", torch.__version__)

        def test_graph(self):
            self.assertFalse(torch.jit.is_scripting())

        def test_helper(self):
            with no_such_helper():
                pass

        @unittest.skipIf(TEST_CUDA, "not here")
        def test_values_differ(self):
            self.assertEqual(torch.ones(2), torch.zeros(2))

    class TestDevices(TestCase):
        @dtypes(torch.float32, torch.int64)
        def test_zeros(self, device, dtype):
            self.assertEqual(torch.zeros(2, device=device, dtype=dtype).dtype, dtype)

        @onlyCUDA
        def test_elsewhere(self, device):
            raise AssertionError

    instantiate_parametrized_tests(TestValues)
    instantiate_device_type_tests(TestDevices, globals())
    if __name__ == "__main__":
        run_tests()
"""


def test_a_file_on_both_libraries(tmp_path):
    file = tmp_path / "test_sample.py"
    file.write_text(textwrap.dedent(FILE))
    done = subprocess.run([sys.executable, RUNNER, file, "--failures"], capture_output=True, text=True, check=True)
    first, outside, *failures = done.stdout.splitlines()
    assert first == "test_sample.py: 4 of 5 (80.0 %); of 9 tests 6 pass on PyTorch"
    assert outside == "  out of scope: 1 jit, compile, fx"
    assert len(failures) == 1 and failures[0].startswith("  TestValues.test_version: failed: AssertionError: 'tapegrad'")
