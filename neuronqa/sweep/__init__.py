"""Catalog -> plan -> cases -> results: status, policy, budget, schedule, audit, controls, resume."""
