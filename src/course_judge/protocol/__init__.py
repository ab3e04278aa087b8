"""What the judge and the workers that run strangers' files share."""
