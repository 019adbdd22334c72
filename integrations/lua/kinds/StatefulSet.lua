-- Healthy: all pods are updated and available. Suspended: paused, or updated up to the partition.
if not observed() then return waiting() end
local manual = at(obj, "spec", "updateStrategy", "type") == "OnDelete"
local rolling = at(obj, "spec", "updateStrategy", "rollingUpdate")
local wanted = replicas()
return rollout({
  wanted = wanted,
  there = count("replicas"),
  expected = manual and 0 or wanted - share(at(rolling, "partition"), wanted),
  updated = most("updatedReplicas", "updatedReadyReplicas"),
  unavailable = wanted - most("availableReplicas", "updatedAvailableReplicas"),
  paused = not manual and at(rolling, "paused") == true,
  manual = manual,
  failure = condition("FailedCreatePod", "True") or condition("FailedUpdatePod", "True"),
})
