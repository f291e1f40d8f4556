"""What a capture of NORM traffic tells: who sent what, who missed and asked, what repaired it, and what was wrong."""
