"""One program on many questions: the loop, its policy, and the records that it keeps."""
