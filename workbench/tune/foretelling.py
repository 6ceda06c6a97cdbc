"""What a simulation foretells of a question before an engine plays anything for it."""

from __future__ import annotations

from collections.abc import Callable

from workbench.errors import EngineError
from workbench.tune.play.players import is_simulated
from workbench.tune.play.virtual import VirtualPlayer
from workbench.tune.question import Question
from workbench.tune.search.prior import Prior, Tell, simulate, simulated_config
from workbench.tune.space import Space


def foretell(asked: Question, tell: Tell, stopped: Callable[[], bool]) -> Prior | None:
    """What a simulation of a live engine says.

    Args:
        asked: the question.
        tell: told of the plays done, those in all, and what is played.
        stopped: whether somebody has stopped it.

    Returns:
        None where the engine cannot be simulated, is simulated anyway, or somebody stopped it.

    Raises:
        EngineError: a simulated engine does not come up.
    """
    if is_simulated(asked.space.config):
        return None  # the search itself is one
    config = simulated_config(asked.space.config)
    if config is None:
        return None
    space = Space(asked.space.hot, config, longest=asked.space.longest)
    player = VirtualPlayer(asked.scenario, asked.goal, space)
    try:
        return simulate(player, space, asked.goal, seed=asked.seed, stopped=stopped, tell=tell)
    except EngineError:
        if stopped():
            return None
        raise
    finally:
        player.close()
