"""Runs the migrations on the connection neuronqa hands over, or on `-x url=...` when alembic is run by hand."""

from alembic import context
from sqlalchemy import create_engine

from neuronqa.db import views
from neuronqa.db.schema import metadata


def migrate(connection) -> None:
    context.configure(connection=connection, target_metadata=metadata, compare_type=True, render_as_batch=False)
    with context.begin_transaction():
        views.drop(connection)
        context.run_migrations()
        views.create(connection)


handed_over = context.config.attributes.get("connection")
if handed_over is not None:
    migrate(handed_over)
else:
    with create_engine(context.get_x_argument(as_dictionary=True)["url"]).begin() as own:
        migrate(own)
