"""What the parent knows of GPUs: their models, machine code, launch plans. Nothing here imports a submission."""
