"""Array functions that records call."""
