"""Programs that use tapegrad, run as `python -m tapegrad.examples.NAME`."""
