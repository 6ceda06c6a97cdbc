"""What a person sees: charts, and later the live panel (the only place that may import ipywidgets)."""
