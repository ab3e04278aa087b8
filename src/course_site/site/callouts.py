"""Callouts: the eight kinds of margin note in the mentor handbook, each with its words and its icon.

Colours are in `docs/assets/css/site.css`, under the names given here. The icons are drawn here, on a grid of 24.
"""

from __future__ import annotations

TITLES = {
    "teaching": "Teaching note",
    "metaphor": "Metaphor",
    "by_hand": "By hand",
    "production": "In production today",
    "click": "The click",
    "trip": "Where students trip",
    "say": "Say this at the board",
    "demo": "Live demo",
}

_STROKES = {
    # A teacher's cap.
    "teaching": "M2 9.5 12 5l10 4.5L12 14zM6.5 11.8V16c0 1.5 2.5 2.8 5.5 2.8s5.5-1.3 5.5-2.8v-4.2M22 9.5V15",
    # A pot that steams: most of the metaphors are cooked.
    "metaphor": "M4.5 11.5h15v5.2a3 3 0 0 1-3 3h-9a3 3 0 0 1-3-3zM1.8 13h2.7M19.5 13h2.7M8.5 8.5c-1-1.6 1-2.6 0-4.2"
    "M12 8.5c-1-1.6 1-2.6 0-4.2M15.5 8.5c-1-1.6 1-2.6 0-4.2",
    # A pencil.
    "by_hand": "M4 20l1.2-4.6L16.4 4.2a1.8 1.8 0 0 1 2.5 0l.9.9a1.8 1.8 0 0 1 0 2.5L8.6 18.8zM14.2 6.4l3.4 3.4M4 20h16",
    # A rack of servers.
    "production": "M4 4.2h16v6.2H4zM4 13.6h16v6.2H4zM7.6 7.3h.1M7.6 16.7h.1M12 7.3h4.6M12 16.7h4.6",
    # A light goes on.
    "click": "M9 17.2h6M10 20.4h4M12 3.2a6 6 0 0 0-3.4 10.9c.5.4.6.9.6 1.6v1.5"
    "h5.6v-1.5c0-.7.1-1.2.6-1.6A6 6 0 0 0 12 3.2z"
    "M3.4 9.2H1.8M22.2 9.2h-1.6M5 3.4l1.1 1.1M19 3.4l-1.1 1.1",
    # A sign at the roadside.
    "trip": "M12 4 2.6 20h18.8zM12 10v4.6M12 17.2v.1",
    # Somebody speaks.
    "say": "M5 4.5h14a2 2 0 0 1 2 2v7.8a2 2 0 0 1-2 2h-7L7 20.5v-4.2H5a2 2 0 0 1-2-2V6.5a2 2 0 0 1 2-2z"
    "M7.2 8.8h9.6M7.2 12.2h6",
    # A screen, and something on it that runs.
    "demo": "M3 4.5h18v11.5H3zM8.5 20h7M12 16v4M10.2 7.6v5.4l4.4-2.7z",
}


def icon(kind: str) -> str:
    """Return the icon of a kind as inline SVG: drawn in the colour of the words beside it, so it also prints."""
    return (
        '<svg viewBox="0 0 24 24" width="20" height="20" fill="none" stroke="currentColor" stroke-width="1.7" '
        f'stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d="{_STROKES[kind]}"/></svg>'
    )
