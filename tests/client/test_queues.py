from __future__ import annotations

from typing import Any

import pytest

from windlass import SettingsError, Windlass


async def test_an_order_without_a_queue_to_carry_it_out_on_is_refused(app: Windlass) -> None:
    many: Any = ["mail", "web"]
    for order in (app.queues.pause, app.queues.resume):
        with pytest.raises(SettingsError, match="no queue was named"):
            await order()
        with pytest.raises(SettingsError, match="the queue is"):
            await order(many)
        with pytest.raises(SettingsError, match="the queue is ''"):
            await order("mail", "")
    wrong: Any
    for wrong in (-1, True, "10", 1.5):
        with pytest.raises(SettingsError, match="max_depth is"):
            await app.queues.limit_depth("mail", wrong)
    assert await app.queues.list() == []
    await app.queues.limit_depth("mail", 0)
    await app.queues.limit_depth("mail", None)
