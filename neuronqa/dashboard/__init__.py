"""Server-rendered pages over the same queries as the report."""
