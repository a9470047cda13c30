"""Formulas: traced, derived, written as source, compiled. The room knows no kind."""
