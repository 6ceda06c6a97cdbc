"""Settings of `make dashboard` (Voilà reads this file as `voila.py` on JUPYTER_CONFIG_PATH)."""

c = get_config()  # noqa: F821  Jupyter's loader defines it

c.TagRemovePreprocessor.remove_cell_tags = {"tour"}  # for those who read code: not run either
c.VoilaConfiguration.template = "workbench"
c.VoilaConfiguration.show_tracebacks = True
# A page that closes asks for the end of its kernel with a beacon, which cannot carry the token that Tornado wants of
# forms; without this the kernel, and its engine, would stay. Jupyter still refuses requests of other origins.
c.Voila.tornado_settings = {"disable_check_xsrf": True}
