"""Addresses of what all editions share, in the theme's frame: any but the reference finds it one folder up."""

from __future__ import annotations

from jinja2 import pass_context
from markupsafe import Markup
from mkdocs.utils.templates import TemplateContext, url_filter

from course_site.site.archive import LICENCE, NAME

SHARED = ("assets/", LICENCE, NAME)


@pass_context
def url(context: TemplateContext, value: str) -> str:
    """Return the address of a page of this edition, or of a file at the root of the site, one folder above it."""
    address: str = url_filter(context, value)
    return f"../{address}" if str(value).startswith(SHARED) else address


@pass_context
def script_tag(context: TemplateContext, script: str) -> str:
    """Return the element of a script, which all editions share."""
    return Markup(f'<script src="{url(context, script)}"></script>')


# In the place of MkDocs' own, by their names in a template.
FILTERS = {"url": url, "script_tag": script_tag}
