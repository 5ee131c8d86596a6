"""Where arrays come from: data types, NumPy, buffer reuse and the optional JAX backend."""
