"""The looks of the course: terminal, pages, pictures. Pictures on a page follow its light or dark, the others stand
alone."""
