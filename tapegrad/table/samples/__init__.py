"""Sample inputs of the records, on which the laws run."""
