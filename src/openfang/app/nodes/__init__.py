"""Other nodes of ours, and peers that come back: how calls leave for them and arrive from them."""
