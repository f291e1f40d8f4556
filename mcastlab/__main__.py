"""Run the command `mcastlab` by `python -m mcastlab`."""

from experiments.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
