"""Libraries that OneFlow computes with. tapegrad computes with NumPy; their switches are kept, and read by nobody."""
