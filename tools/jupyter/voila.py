"""Settings of `make dashboard` and `workbench room` (Voilà reads this file as `voila.py` on JUPYTER_CONFIG_PATH)."""

import os

c = get_config()  # noqa: F821  Jupyter's loader defines it

c.TagRemovePreprocessor.remove_cell_tags = {"tour"}  # for those who read code: not run either
c.VoilaConfiguration.template = "workbench"
c.VoilaConfiguration.show_tracebacks = True
# A page that closes asks for the end of its kernel with a beacon, which cannot carry the token that Tornado wants of
# forms; without this the kernel, and its engine, would stay. Jupyter still refuses requests of other origins.
c.Voila.tornado_settings = {"disable_check_xsrf": True}
# A laptop that is lost sends no beacon. A page says every 15 s that it is there (in the background, once a minute); a
# panel that hears nothing ends its engine and falls silent, and a kernel that says nothing more is ended.
os.environ.setdefault("WORKBENCH_LEAVE_AFTER_S", "180")
c.MappingKernelManager.cull_idle_timeout = 300
c.MappingKernelManager.cull_interval = 60
c.MappingKernelManager.cull_connected = True  # half a connection stays when the other half is gone
# `workbench room --host` beyond loopback: no page and no kernel without it. From the environment, where no list of
# processes shows it.
if os.environ.get("WORKBENCH_ROOM_TOKEN"):
    c.Voila.token = os.environ["WORKBENCH_ROOM_TOKEN"]
