"""The panel's controls: forms for start-up fields, hot knobs and load, made from the configurations' own text.

controls a widget with a value of its own
fields   one control from one field
aria     what a screen reader needs beside it
startup  what an engine is started with (a restart each)
knobs    what the next scheduler step uses
load     what is played, and the promise that it is held against
"""
