"""The AdvancedCronJob manifest, the commands and tables of the article that users learn from, word for word. What
happens when its minute comes, tests on real nodes show."""

from tests.support.workspace import Workspace

DEMO = """
apiVersion: apps.kruise.io/v1alpha1
kind: AdvancedCronJob
metadata:
  name: acj-test
spec:
  schedule: "*/1 * * * *"
  template:
    broadcastJobTemplate:
      spec:
        completionPolicy:
          type: Always
          ttlSecondsAfterFinished: 30
        template:
          spec:
            restartPolicy: Never
            containers: # 一定不是一个常驻前台的进程,一定是一个任务,执行完成后需要退出的
              - name: counter
                image: busybox
                command:
                  - "/bin/sh"
                  - "-c"
                  - "for i in 9 8 7 6 5 4 3 2 1; do echo $i; done"
"""


def test_a_job_every_minute(space: Workspace):
    applied = space.kubectl("apply", "-f", "-", stdin=DEMO)
    assert applied == "advancedcronjob.apps.kruise.io/acj-test created\n"
    space.until(lambda: space.clone("acj-test").get("status", {}).get("type") == "BroadcastJob")
    header, line = space.kubectl("get", "acj").splitlines()
    assert header.split() == ["NAME", "SCHEDULE", "TYPE", "LASTSCHEDULETIME", "AGE"]
    assert line.split()[:7] == ["acj-test", "*/1", "*", "*", "*", "*", "BroadcastJob"]
    stored = space.read("acj", "acj-test")["spec"]
    assert (stored["concurrencyPolicy"], stored["successfulJobsHistoryLimit"]) == ("Allow", 3)
