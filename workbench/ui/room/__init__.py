"""One engine shown to a room: pages that only look, at the runs that somebody else's engine records.

watched.py  the newest run of a folder, read while it grows; nothing is written, no engine is started
page.py     the page: large charts and figures for viewers, the panel for whoever has the teacher's key
"""

from workbench.ui.room.page import Room, room_page

__all__ = ["Room", "room_page"]
