"""What a kind is and what it is given."""
