"""GPUs: their models, launch plans, replay and timing. Nothing here imports a submission."""
