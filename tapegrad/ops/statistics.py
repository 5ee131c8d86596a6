"""Order statistics, histograms and other summaries, made of the table's operations."""

from __future__ import annotations
