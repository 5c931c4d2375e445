"""How things look: terminal, pages, pictures. Each picture stands alone and follows the light or dark of its reader."""
