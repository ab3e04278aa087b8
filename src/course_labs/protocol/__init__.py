"""What the grader and the workers that run students' files share."""
