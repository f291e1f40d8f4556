"""The commands of `mcastlab`, one file for each."""
