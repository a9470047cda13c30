"""Zhang, Singh, Latham, Saxe (2025): linear attention learns linear regression in context."""
