"""Parts of this project's web servers: access control, listening, and a clean end."""
