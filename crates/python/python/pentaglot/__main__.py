"""``python -m pentaglot``: the command."""

import sys

from pentaglot._native import command


def main() -> int:
    """Runs the command with the arguments of this process."""
    return command(["pentaglot", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
