"""Python floats in place of 0-dim arrays, for derivatives of functions of one number: a tenth of the time.

`functions` has the arithmetic, `scalar` the tensors that hold a float, and their backward pass.
"""
