"""The policy `require-actor`: denies changes without an actor."""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports import judge
from wit_world.imports import component


class Judge(exports.Judge):
    def describe(self):
        return judge.Manifest(
            name="require-actor-python",
            version="0.1.0",
            summary="Denies changes without an actor.",
            phase=judge.Phase.REQUEST,
            wants=[],
            migrations=[],
            config_schema=None,
        )

    def configure(self, settings):
        unknown = list(json.loads(settings or "{}"))
        if unknown:
            raise Err([judge.Problem(key, "there is no such setting") for key in unknown])

    def before_call(self, request):
        actor = request.identity or json.loads(request.arguments).get("actor")
        is_named = isinstance(actor, str) and actor.strip() != ""
        if request.effect == component.Effect.READ or is_named:
            return judge.Verdict_Pass(), []
        denial = judge.Denial(
            code="ACTOR_REQUIRED",
            reason="the call has no actor",
            remediation="Pass your name in the argument `actor`.",
            next_call=None,
        )
        return judge.Verdict_Deny(denial), []

    def after_call(self, request, outcome):
        return judge.Review_Pass(), []
