"""The whole service on AWS: what the template adds for an image, and the commands of stacks."""
