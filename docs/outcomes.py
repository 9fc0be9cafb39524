"""Print the outcome table from the code: `python docs/outcomes.py > docs/outcomes.md`. A test holds the two equal."""

from neuronqa.domain.outcome import Kind

HEAD = """# The outcome table

Every answer of every check is one of these, written `stage:reason(detail)` in the database, in JSON, on the command
line and on pages. *Standing* is what it is worth on its rung; *at fault* is who has to act; *reusable* says whether a
later sweep with the same reuse key may take it over, *retryable* whether a second look is worth its cost (looks only
label; the first attempt counts). This page is printed from `neuronqa/domain/outcome.py`.

| outcome | check | rung | standing | at fault | reusable | retryable |
|---|---|---|---|---|---|---|"""


def rows() -> list[str]:
    out = []
    for kind in Kind:
        rules = kind.rules
        check = rules.check.value if rules.check else "any"
        rung = rules.rung.value if rules.rung else "the check's"
        flags = ("yes" if flag else "no" for flag in (rules.reusable, rules.retryable))
        cells = (f"`{kind.value}`", check, rung, rules.standing.value, rules.at_fault.value, *flags)
        out.append(f"| {' | '.join(cells)} |")
    return out


if __name__ == "__main__":
    print("\n".join([HEAD, *rows()]))
