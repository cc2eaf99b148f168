"""Give the platform's operators their admin site, and the models through which it shows tenants and people."""
