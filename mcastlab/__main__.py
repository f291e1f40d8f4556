"""`python -m mcastlab`: the same as the command `mcastlab`."""

from experiments.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
