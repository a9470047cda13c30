"""What only this paper's figures need of theory."""
