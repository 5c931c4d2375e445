"""What someone learning alone uses beside pytest: progress, hints, watch, pictures. Nothing leaves the machine."""
