"""Rows -> one Report value; renderers only render."""
