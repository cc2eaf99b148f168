"""Register what operators see of what leaves the desks: importing this package does it.

Begin with `dead_delivery_admin.py`, and for queues and who has which with `queue_pages.py`.
"""

from delivery.admin import dead_delivery_admin, held_tenant_admin, queue_pages

__all__ = ["dead_delivery_admin", "held_tenant_admin", "queue_pages"]
