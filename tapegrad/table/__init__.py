"""The table of operations: one record for each, in families.

A family is imported when one of its records is first asked for: see `later.Table`.
"""
