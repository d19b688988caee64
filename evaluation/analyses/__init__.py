"""What the papers read from evaluated runs."""
