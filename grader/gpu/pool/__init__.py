"""The owners of replay processes: who is asked, when, and how far one is trusted."""
