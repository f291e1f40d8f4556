"""One scenario under several protocols or in two worlds, with paired differences."""
