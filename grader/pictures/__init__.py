"""Pictures as SVG text, made from what a grading found. Each stands alone and follows the reader's light or dark."""
