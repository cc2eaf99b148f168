"""Let an operator act as a member of a desk: for a reason, for a short time, in sight of the desk's owners.

Begin with `impersonating.py`; what the session holds is in tenants/sign_in/impersonation_session.py, and what it opens
in tenants/tenancy/access_middleware.py.
"""
