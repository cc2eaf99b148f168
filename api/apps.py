from portal.apps import RoomsConfig


class ApiConfig(RoomsConfig):
    name = "api"
