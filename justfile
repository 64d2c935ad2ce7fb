# The real agents' programs, run by the real ralph, against a model on loopback. Needs npm and Linux namespaces;
# says SKIPPED where it cannot run. Arguments: a part of a test's name, --nocapture …
real-agents *arguments:
    tests/real_agents/run.sh {{arguments}}
