import pytest

from reference_trainer.demonstrations import FORMS
from reference_trainer.workflows.prompts import load_prompts

FIELDS = ("question", "candidates", "number", "text", "strategy", "feedback")
DEMANDED = {
    "generator": ("boxed", "python"),
    "aggregator": ("boxed", "boxed"),
    "evaluator": ("Incorrect}", "Incorrect}"),
    "orchestrator": ("STRATEGY 1:", "STRATEGY 1:"),
    "worker": ("boxed", "python"),
    "synthesizer": ("boxed", "python"),
}


def forms() -> set[tuple[str, str]]:
    return {pair for pairs in FORMS.values() for pair in pairs}


@pytest.mark.parametrize(("family", "index"), [("chat-math", 0), ("chat-code", 1)])
def test_every_chat_form_fills_and_demands_its_output_form(family: str, index: int) -> None:
    prompts = load_prompts(family)
    for role, form in forms():
        text = prompts.fill(role, form, **{name: f"<{name}>" for name in FIELDS})
        if form != "candidate":
            assert DEMANDED[role][index] in text
            assert "{{" not in text


def test_no_form_is_missing_or_unused_in_any_family() -> None:
    for family in ("tiny", "chat-math", "chat-code"):
        prompts = load_prompts(family)
        assert {(role, form) for role, texts in prompts.forms.items() for form in texts} == forms()
