"""torch.backends: the libraries that PyTorch computes with. tapegrad computes with NumPy; their switches are kept, and read
by nobody.
"""
