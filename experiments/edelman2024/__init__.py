"""Edelman, Tsilivis, Edelman, Malach, Goel (2024): how in-context bigrams are learnt."""
