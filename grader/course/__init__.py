"""What an exercise is, where its files lie, and the calls that judge it: stated, drawn, hidden."""
