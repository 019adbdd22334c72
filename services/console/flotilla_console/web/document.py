"""The HTML document around a page."""

from collections.abc import Mapping

from flotilla_console.blocks import html
from flotilla_console.blocks.markup import Attribute, Markup, element
from flotilla_console.blocks.types import Notice
from flotilla_console.page import Page
from flotilla_console.web.shown import Entry, Shown, in_script
from flotilla_console.web.static_files import StaticFiles

NAME = "Flotilla"


def document(of: Shown, static: StaticFiles) -> str:
    """Return the document of a page."""
    frame = html.Frame(now=of.now, query=of.query, csrf=of.csrf)
    # The JSON has no character that could end the element, and must not be escaped in it.
    data = element("script", {"type": "application/json", "id": "shown"}, Markup(in_script(of)))
    body = element(
        "body",
        None,
        element("a", {"class": "skip", "href": "#main"}, "Skip to content"),
        _header(of),
        element("div", {"id": "banners", "role": "status"}, _banners(of, frame)),
        element("main", {"id": "main", "tabindex": -1}, _main(of.page, frame)),
        data,
    )
    return f"<!doctype html>\n{element('html', {'lang': 'en'}, _head(of, static), body)}\n"


def _head(of: Shown, static: StaticFiles) -> Markup:
    def meta(name: str, content: str) -> Markup:
        return element("meta", {"name": name, "content": content})

    def link(relation: str, name: str) -> Markup:
        return element("link", {"rel": relation, "href": static.path(name)})

    script: Mapping[str, Attribute] = {"type": "module", "src": static.path("app.js")}
    return element(
        "head",
        None,
        element("meta", {"charset": "utf-8"}),
        meta("viewport", "width=device-width, initial-scale=1"),
        meta("color-scheme", "light dark"),
        meta("robots", "noindex, nofollow"),
        element("title", None, f"{of.page.title} · {NAME}"),
        link("icon", "icon.svg"),
        link("stylesheet", "style.css"),
        element("script", script),
    )


def _header(of: Shown) -> Markup:
    entries = [element("li", None, _entry(entry, of)) for entry in of.navigation]
    navigation = element("nav", {"aria-label": "Main"}, element("ul", None, *entries))
    user = element("span", {"class": "user"}, of.user)
    brand = element("a", {"class": "brand", "href": "/"}, NAME)
    sign_out = [element("a", {"class": "sign-out", "href": "/signout"}, "Sign out")] if of.session else []
    return element("header", {"id": "header"}, brand, navigation, user, *sign_out)


def _entry(entry: Entry, of: Shown) -> Markup:
    here = of.path.partition("?")[0] == entry.href
    return html.anchor(entry.href, entry.label, **{"aria-current": "page" if here else None})


def _banners(of: Shown, frame: html.Frame) -> Markup:
    return html.blocks(of.banners, frame)


def _main(page: Page, frame: html.Frame) -> Markup:
    trail = [element("li", None, html.line((link,), frame)) for link in page.trail]
    crumbs = element("nav", {"aria-label": "Breadcrumb", "class": "trail"}, element("ol", None, *trail))
    return Markup((crumbs if trail else "") + element("h1", None, page.title) + html.blocks(page.blocks, frame))


def message(title: str, *paragraphs: Notice) -> Page:
    """Return a page that only says something."""
    return Page(title, paragraphs)
