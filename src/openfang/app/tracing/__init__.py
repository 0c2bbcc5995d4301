"""Calls as spans, and counts as metrics, for a collector that speaks OTLP."""
