"""What passes over graphs are built of."""
