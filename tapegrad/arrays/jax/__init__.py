"""JAX as an array backend: for each record of the table, its forward on JAX arrays and tracers.

Imported only when somebody asks for JAX. `forward(op)` is, in this order, a kernel written for JAX (`kernel`), the record's own
text with `np` read as `jax.numpy` (`derive`), or, for the few records of `HOST`, the NumPy forward called back on the host.
Kernels run under `jax.enable_x64(True)`: dtypes come out as NumPy's.
"""
