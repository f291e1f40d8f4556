"""Foreign programs as nodes of an emulation: NRL's NORM library, any command line, and the traffic meter for both."""
