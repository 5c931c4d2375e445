"""nbgrader's database, by its URL: a SQLite file, or a database of a server.

A wrong URL and a server that does not answer are reported before any work is done.
"""

from __future__ import annotations

import click
from sqlalchemy import create_engine
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

EXPECTED = "postgresql://USER@HOST/DATABASE or sqlite:////FOLDER/gradebook.db was expected"


def check_url(url: str) -> None:
    """Raises click.ClickException for a URL that no database can have, or whose driver is not installed.

    "" stands for nbgrader's own choice.
    """
    try:
        if url:
            create_engine(url)
    except (ArgumentError, NoSuchModuleError):
        raise click.ClickException(f"--db: {url!r} is no URL of a database; {EXPECTED}.") from None
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f'{error.name} is missing: python -m pip install -e ".[cluster]" in the course\'s folder'
        ) from None


def check_answers(url: str) -> None:
    """Raises click.ClickException where the database does not answer.

    A SQLite file need not exist: nbgrader makes it.
    """
    check_url(url)
    if url.startswith("sqlite"):
        return
    shown = make_url(url).render_as_string(hide_password=True)
    engine = create_engine(url)
    try:
        engine.connect().close()
    except SQLAlchemyError as error:
        said = str(getattr(error, "orig", error)).strip().partition("\n")[0]
        raise click.ClickException(
            f"The gradebook {shown} does not answer: {said}. Nothing was graded. Next: start the server, or make the "
            "database (createdb)."
        ) from None
    finally:
        engine.dispose()
