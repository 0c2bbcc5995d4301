"""Extensions as parts of the running process."""
