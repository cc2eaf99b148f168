"""Hold one loud tenant to its rate while another goes on: `python -m examples.tenant_rate`. It needs no database."""

from __future__ import annotations

from portal.load.tenant_limiter import CHANGE_UNITS, READ_UNITS, TenantLimiter

RATE = 10.0  # units a second; a burst is ten seconds' worth


def main() -> None:
    limiter = TenantLimiter(clock=lambda: 0.0)  # time stands still: the numbers below are always the same
    answers = [limiter.spend("loud", CHANGE_UNITS, per_second=RATE) for _ in range(25)]
    refused = [answer for answer in answers if answer and not answer.allowed]
    print(f"loud: {len(answers) - len(refused)} changes taken, {len(refused)} refused")
    print("loud is told:", refused[-1].headers)
    quiet = limiter.spend("quiet", READ_UNITS, per_second=RATE)
    print("quiet:", "taken" if quiet and quiet.allowed else "refused")


if __name__ == "__main__":
    main()
