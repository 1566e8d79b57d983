"""What a user makes: `Windlass`, by what it does: declaring, enqueueing, rooms of answers, observing, running."""

from windlass.app.application import Windlass as Windlass
