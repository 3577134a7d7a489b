"""What runs behind HTTP: the server, and the playground page."""
