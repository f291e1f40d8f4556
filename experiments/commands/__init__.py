"""The commands of `mcastlab`, one file each."""
