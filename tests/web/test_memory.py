"""A request leaves nothing behind in its process."""

from __future__ import annotations

import gc

from django.core.wsgi import get_wsgi_application
from django.test import RequestFactory

from tests.support.world import World

REQUESTS = 40
PAGES = ("", "1/", "dashboard/", "people/")


def test_a_process_has_as_many_objects_after_many_requests_as_before(world: World) -> None:
    world.tickets("acme", 3)
    cookie = world.browser("alice", "acme").cookies.output(header="", sep=";").strip()
    application = get_wsgi_application()  # not a test client: that of Django leaves a dozen objects for each request

    def objects_after(times: int) -> int:
        for number in range(times):
            path = f"/acme/tickets/{PAGES[number % len(PAGES)]}"
            environ = RequestFactory().get(path, headers={"Cookie": cookie}).environ
            said = list[str]()
            body = application(environ, lambda status, headers, said=said: said.append(status))
            b"".join(body)
            body.close()
            assert said == ["200 OK"], path
        gc.collect()
        return len(gc.get_objects())

    objects_after(REQUESTS)  # what is made once, and kept
    before = objects_after(REQUESTS)
    assert objects_after(REQUESTS) - before < REQUESTS
