"""A freeze: denies changes, except by listed actors.

A policy is its settings: the annotated attributes are the keys of `[policies.my-policy.config]`, and `before` evaluates a call
before it runs.
"""

from dataclasses import field
from typing import Annotated

from tollgate_sdk import Deny, Pass, Policy, Problem, Request, Verdict


class Freeze(Policy, name="my-policy", summary="Denies changes during a freeze, except by listed actors."):
    """Denies changes, except by listed actors."""

    reason: Annotated[str, 'Reason for the freeze, shown to callers, for example "release day".']
    allowed: Annotated[
        list[str],
        "Actors that may make changes nevertheless: proven identities or, where there is none, names that calls give as "
        "`actor`. Default none.",
    ] = field(default_factory=list)

    def problems(self) -> list[Problem]:
        return [] if self.reason.strip() else [Problem("reason", "must give a reason for callers")]

    def before(self, request: Request) -> Verdict:
        if request.effect == "read" or request.actor in self.allowed:
            return Pass()
        return Deny(
            "FROZEN",
            f"changes are frozen: {self.reason}",
            "Wait until the freeze is over, or ask an actor who may make changes.",
        )


Judge = Freeze.export()
