"""Trials side by side on a Ray cluster, each on an engine of its own.

player      what the search plays with; it speaks JSON lines with the driver
driver      in a process of its own, where Ray is imported (cluster: start or join one; address: which)
actors      the workers as Ray has them (crew: who plays what)
worker      one of them on a node: a pipe to trial_child, which owns the engine
resources   what one engine takes of the cluster; cores: which of a machine's cores
artefacts   run folders on their way home; remote: what travels; lines: the pipe; scratch: folders for a while
"""
