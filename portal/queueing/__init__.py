"""Reach the queues of Amazon SQS, or of what stands in for it: one client for each role, and errors that are ours.

Begin with `sqs_client.py`.
"""
