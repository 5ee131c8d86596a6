"""Runs the program, or says what to install for it."""

import sys

try:
    from .program import main
except ImportError as e:
    if (e.name or "").startswith("tapegrad"):
        raise
    sys.exit(f"python -m tapegrad.examples.sdf needs more packages: pip install 'tapegrad[examples]' ({e})")

if __name__ == "__main__":
    sys.exit(main())
