"""The web monitor: sessions of this machine announce themselves, and a page shows their statistics live."""
