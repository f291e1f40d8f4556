"""Messages by multicast that are repaired on NACKs, in the order in which they were published: what bus and fjm share."""
