"""Measurements: how fast the engines are. Nothing here decides whether anything is right."""
