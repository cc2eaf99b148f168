"""Register what operators see of what leaves the desks: importing this package does it.

Begin with `dead_delivery_admin.py`, and for queues and who has which with `queue_set_views.py`.
"""

from delivery.admin import blast_radius_views, dead_delivery_admin, held_tenant_admin, queue_set_views

__all__ = ["blast_radius_views", "dead_delivery_admin", "held_tenant_admin", "queue_set_views"]
