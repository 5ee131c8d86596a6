"""Functional transforms."""
