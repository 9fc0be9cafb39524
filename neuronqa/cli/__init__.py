"""The command line: one module a verb. Importing it loads neither torch nor transformers, ray or sqlalchemy."""
