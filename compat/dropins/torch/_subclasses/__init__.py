"""torch._subclasses: tensors without values, of which there are none."""
