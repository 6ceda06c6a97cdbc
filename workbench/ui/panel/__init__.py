"""The panel: forms for start-up fields, hot knobs, load and policies, made from the configurations' own text.

parts     what stands in a form, as plain data
form      the one widget that draws parts, and its JavaScript beside it
controls  parts with a value
fields    one control from one field
startup   what an engine is started with (a restart each)
knobs     what the next scheduler step uses
load      what is played, and the promise that it is held against
policies  one load under several policies
forms     all of these together; driving: what they do; fitting: made to fit what goes on
app       the panel itself
planner   hardware that nobody has here: a widget of its own, with plan_form (form_box: in a page)
"""
