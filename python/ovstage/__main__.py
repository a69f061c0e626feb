"""``python -m ovstage``."""

import sys

from ovstage.command import main

if __name__ == "__main__":
    sys.exit(main())
