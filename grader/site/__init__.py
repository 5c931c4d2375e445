"""The course as a site: pages of HTML that are made of the course's own texts, and of nothing else."""
