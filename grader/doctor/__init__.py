"""What this machine can judge."""
