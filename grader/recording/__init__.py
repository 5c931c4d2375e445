"""What a child says that a call does: buffers, fills and launches, read from an untrusted process and checked."""
