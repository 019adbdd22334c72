"""The AdvancedCronJob manifest, commands and tables of the users' article, verbatim.

Tests on real nodes show what happens when a run is due.
"""

from tests.support.workspace import Workspace
from tests.testkit.manifests import article

DEMO = article("advancedcronjob/demo")


def test_a_job_every_minute(space: Workspace):
    applied = space.kubectl("apply", "-f", "-", stdin=DEMO)
    assert applied == "advancedcronjob.apps.kruise.io/acj-test created\n"
    space.until(lambda: space.clone("acj-test").get("status", {}).get("type") == "BroadcastJob")
    header, line = space.kubectl("get", "acj").splitlines()
    assert header.split() == ["NAME", "SCHEDULE", "TYPE", "LASTSCHEDULETIME", "AGE"]
    assert line.split()[:7] == ["acj-test", "*/1", "*", "*", "*", "*", "BroadcastJob"]
    stored = space.read("acj", "acj-test")["spec"]
    assert (stored["concurrencyPolicy"], stored["successfulJobsHistoryLimit"]) == ("Allow", 3)
