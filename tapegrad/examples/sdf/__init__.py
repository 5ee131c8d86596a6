"""A neural signed distance function of a triangle mesh: `python -m tapegrad.examples.sdf MESH`."""
