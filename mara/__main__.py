"""``python -m mara`` is the ``mara`` command."""

from mara.cli.main import main

if __name__ == "__main__":
    main()
