"""OAuth 2.1 for servers at an address: signing in, staying signed in, and what is kept of it."""
