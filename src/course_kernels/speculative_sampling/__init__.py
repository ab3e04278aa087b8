"""Acceptance of drafted tokens: which of them stay, and the token behind them, distributed as the target says."""
