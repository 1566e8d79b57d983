"""A handler in a process of its own: it cannot hold up the worker, and is killed at its timeout.

The process imports this module, so what should happen once stands below the guard.
"""

import asyncio
import os

from windlass import Windlass

app = Windlass()


@app.job(process=True)
def digits_of_pi(n: int) -> tuple[str, int]:
    pi = 4 * (4 * arctan_of_inverse(5, n) - arctan_of_inverse(239, n))  # Machin's formula
    digits = str(pi)[: n + 1]
    return f"{digits[0]}.{digits[1:]}", os.getpid()


def arctan_of_inverse(x: int, n: int) -> int:
    """The arc tangent of 1/x in whole numbers, scaled by ten to the power of n and ten guard digits."""
    power, total, term = 10 ** (n + 10) // x, 0, 0
    while power:
        total += (-1) ** term * (power // (2 * term + 1))
        power, term = power // (x * x), term + 1
    return total


@app.job(process=True, timeout=0.5, retry=1)
def hang() -> None:
    while True:
        pass


async def main() -> None:
    async with app.worker():
        digits, pid = await (await digits_of_pi.enqueue(30)).result(timeout=30)
        print(digits)
        print(f"computed in another process: {pid != os.getpid()}")
        hung = await (await hang.enqueue()).wait(timeout=30)
        print(f"{hung.status}: {hung.error.message if hung.error else ''}")


if __name__ == "__main__":
    asyncio.run(main())
