"""The web application with its live stream."""

from collections.abc import Sequence

from fastapi import FastAPI
from starlette.routing import BaseRoute

from flotilla_common.clock import Clock, Entropy
from flotilla_console.live.hub import Hub
from flotilla_console.live.routes import Live
from flotilla_console.page import PageSpec
from flotilla_console.web.access import Sights, SignIn
from flotilla_console.web.application import Addresses, Parts, build
from flotilla_console.web.pages import Pages
from flotilla_console.web.static_files import StaticFiles


class Site:
    """Pages, their live stream, and the routes that are added to them."""

    def __init__(
        self, specs: Sequence[PageSpec], sign_in: SignIn, sights: Sights, clock: Clock, entropy: Entropy
    ) -> None:
        self._specs, self._static = specs, StaticFiles.packaged()
        self.hub = Hub(Addresses(specs), clock, entropy)
        self.pages = Pages(specs, sign_in, sights, clock, self._static)
        self.live = Live(self.hub, sign_in, sights, clock)

    def application(self, routes: Sequence[BaseRoute] = ()) -> FastAPI:
        """Return the application with these routes in addition."""
        return build(
            Parts(specs=self._specs, pages=self.pages, static=self._static, routes=(*self.live.routes(), *routes))
        )
