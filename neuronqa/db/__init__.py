"""The database: tables, engine, writer, queries. The only package that imports sqlalchemy."""
