"""What a mentor does at every minute: session maps read and checked, and all that is shown of them."""
