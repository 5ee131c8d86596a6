"""The table: one record an operation. Each file defines records and the public functions made of them."""
