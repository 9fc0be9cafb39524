"""The words of the project as frozen values and pure functions: no torch, no ray, no sqlalchemy, no I/O."""
