"""Name the token bucket that all rooms share where the senders look for it."""

from portal.tenant_buckets import TokenBucket

__all__ = ["TokenBucket"]
