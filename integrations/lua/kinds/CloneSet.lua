-- Healthy: all pods are updated and available. Suspended: paused, or updated up to the partition.
if not observed() then return waiting() end
local strategy = at(obj, "spec", "updateStrategy")
local rolling = at(strategy, "rollingUpdate") or strategy -- v1alpha1 has no rollingUpdate
local manual = at(strategy, "type") == "OnDelete"
local partition = at(rolling, "partition") or 0
local wanted, expected = replicas(), replicas()
if manual then
  expected = 0
elseif partition ~= 0 and partition ~= "0%" then
  expected = count("expectedUpdatedReplicas") -- absent when it is 0
end
return rollout({
  wanted = wanted,
  there = count("replicas"),
  expected = expected,
  updated = most("updatedReplicas", "updatedReadyReplicas"),
  unavailable = wanted - most("availableReplicas", "updatedAvailableReplicas"),
  paused = not manual and at(rolling, "paused") == true,
  manual = manual,
  failure = condition("Progressing", "False", "ProgressDeadlineExceeded")
    or condition("FailedScale", "True")
    or condition("FailedUpdate", "True"),
})
