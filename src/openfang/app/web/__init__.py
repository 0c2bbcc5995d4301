"""What the web page is handed: calls and figures as the log has them."""
