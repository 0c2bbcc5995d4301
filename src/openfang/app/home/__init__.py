"""The home folder: where everything lies, how it is made, checked, copied and put back."""
