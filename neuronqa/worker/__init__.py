"""One workload's cases, executed apart: reference child, device child, judge; zygote, supervisor, Ray actor."""
