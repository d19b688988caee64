"""Runs, traces and programs in MLflow."""
