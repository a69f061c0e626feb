"""The version of this distribution; pyproject.toml and `ovstage.__version__` both take it from here."""

__version__ = "0.1.0"
