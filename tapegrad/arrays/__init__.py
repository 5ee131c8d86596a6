"""Where arrays come from: NumPy, dtypes and promotion, numerical kernels, random streams."""
