"""May it? Grants, the gates in their order, and the questions that people answer."""
