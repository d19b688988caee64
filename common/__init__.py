"""What every room stands on: errors, text, files, names and caches."""
